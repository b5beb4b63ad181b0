//! The calls of a run in parts: by the function of the program that made them, by rank, or by process.

use std::{cmp::Reverse, collections::HashMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use urscope_schema::{host::ranks::process_name, trace::records::Header};

use super::{By, QuestionError, VERSION};
use crate::analysis::{Analysis, CallSites, Options, Stacks};
use crate::lifetimes::{EventSink, FinishedCall, LifetimeTracker, ProcessStart};

/// The calls of a run, in parts: by rank and pid, or, of places in the program, the one that took longest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallsBy {
    /// [`VERSION`].
    pub version: u32,
    /// All calls together.
    pub total: CallPart,
    /// The number of parts that are left out of `parts`.
    pub more: u64,
    /// The parts.
    pub parts: Vec<CallPart>,
}

/// The calls of one part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallPart {
    /// The function and line, the rank, or the process; empty for all calls together.
    pub name: String,
    /// The number of calls that began.
    pub calls: u64,
    /// The number of those that share something between processes.
    pub ipc_calls: u64,
    /// The number of calls that returned an error.
    pub errors: u64,
    /// How long the calls took that returned, in nanoseconds.
    pub total_ns: u64,
    /// How long the longest of them took, in nanoseconds.
    pub max_ns: u64,
}

impl CallPart {
    /// Adds the calls of another part, and takes its name.
    fn add_all(&mut self, other: &Self) {
        self.name.clone_from(&other.name);
        self.calls += other.calls;
        self.ipc_calls += other.ipc_calls;
        self.errors += other.errors;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn add(&mut self, call: &FinishedCall<'_>) {
        self.calls += 1;
        self.ipc_calls += u64::from(call.function.is_ipc());
        self.errors += u64::from(call.result.is_some_and(|result| !result.is_success()));
        if let Some(to) = call.to {
            let took = to.saturating_sub(call.from);
            self.total_ns += took;
            self.max_ns = self.max_ns.max(took);
        }
    }
}

/// The calls of a run by `by`, at most `limit` parts.
pub fn calls_by(paths: &[PathBuf], options: &Options, by: By, limit: usize) -> Result<CallsBy, QuestionError> {
    let sites = CallSites::new(options);
    let collector = Collector {
        by,
        sites,
        processes: Vec::new(),
        total: CallPart::default(),
        parts: HashMap::new(),
        stacks: HashMap::new(),
    };
    let mut tracker = LifetimeTracker::new(collector);
    let mut analysis = Analysis::run(paths, options, &mut tracker)?;
    let mut collector = tracker.into_sink();
    if by == By::Site {
        collector.sites.agree_with(&mut analysis);
        collector.find_sites();
    }
    let Collector { total, parts, .. } = collector;
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut parts: Vec<CallPart> = parts.into_iter().map(|(_, part)| part).collect();
    if by == By::Site {
        parts.sort_by_key(|part| Reverse(part.total_ns));
    }
    let more = parts.len().saturating_sub(limit) as u64;
    parts.truncate(limit);
    Ok(CallsBy { version: VERSION, total, more, parts })
}

struct Collector {
    by: By,
    sites: CallSites,
    /// The rank, the pid and the name of each process.
    processes: Vec<(Option<u32>, u32, String)>,
    total: CallPart,
    /// By rank, pid and name, as far as the parts are of one rank or process.
    parts: HashMap<(Option<u32>, u32, String), CallPart>,
    /// By process and call stack, if the parts are of places: those are known when all calls are.
    stacks: HashMap<(u32, Option<u64>), CallPart>,
}

impl Collector {
    /// Makes parts of the calls from each call stack.
    fn find_sites(&mut self) {
        for ((process, stack), calls) in std::mem::take(&mut self.stacks) {
            let site = self.sites.get(process, stack);
            let name = site.map_or_else(|| "unknown place".to_owned(), |site| site.name.clone());
            self.parts.entry((None, 0, name.clone())).or_default().add_all(&CallPart { name, ..calls });
        }
    }
}

impl EventSink for Collector {
    fn process(&mut self, began: &ProcessStart<'_>) {
        let Header { pid, executable, rank, .. } = began.header;
        self.processes.push((*rank, *pid, process_name(executable, *pid, *rank)));
    }

    fn stacks(&mut self, _: u32, stacks: &Stacks) {
        self.sites.add(stacks);
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        self.total.add(call);
        let Some((rank, pid, process)) = self.processes.get(call.process as usize) else { return };
        let key = match self.by {
            By::Site => {
                self.stacks.entry((call.process, call.asked.stack)).or_default().add(call);
                return;
            }
            By::Rank => (*rank, 0, rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}"))),
            By::Process => (*rank, *pid, process.clone()),
        };
        let part = self
            .parts
            .entry(key)
            .or_insert_with_key(|(.., name)| CallPart { name: name.clone(), ..CallPart::default() });
        part.add(call);
    }
}
