//! The calls of all processes, one after the other, in the order in which they returned; also those of a run that goes
//! on.
//!
//! Calls are handed on as they are read: the list is never in memory as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::{mem, path::PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use urscope_schema::call::{Shape, Values};
use urscope_schema::{api::ResultCode, host::ranks::process_name, trace::records::Header};

use super::{CallFilter, QuestionError};
use crate::AnalysisError;
use crate::analysis::{Analysis, Following, Options};
use crate::lifetimes::{EventSink, FinishedCall, LifetimeTracker, ProcessStart};

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallLine {
    /// When it began, in nanoseconds since the first process of the run began.
    pub begin_ns: u64,
    /// How long it took in nanoseconds; `None` if it never returned.
    pub took_ns: Option<u64>,
    /// The name of the process's host.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// The rank of the process under an MPI launcher.
    pub rank: Option<u32>,
    /// The process's executable.
    pub executable: String,
    /// The thread id.
    pub tid: u32,
    /// The number of the call in its process; of one that is `inside` of another, the number of that one.
    pub call: u64,
    /// The function of the call that it is inside of, if the runtime made it inside of another one. Such calls are not
    /// judged.
    pub inside: Option<&'static str>,
    /// The function.
    pub function: &'static str,
    /// The recorded arguments by name, in their order, as text: addresses as `0x…`, sizes and counts as numbers.
    pub arguments: Map<String, Value>,
    /// The recorded answers, likewise.
    pub answers: Map<String, Value>,
    /// The result; `None` if it never returned.
    pub result: Option<String>,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// When the trace of its process began, in nanoseconds of the host's monotonic clock: tells programs apart that
    /// follow each other in one process.
    #[serde(skip)]
    trace_began: u64,
}

impl CallLine {
    /// The name of its process in text.
    pub fn process(&self) -> String {
        process_name(&self.executable, self.pid, self.rank)
    }

    /// What no other call of the run has.
    fn identity(&self) -> Identity {
        (self.pid, self.trace_began, self.call, self.inside.map(|_| self.begin_ns))
    }
}

/// The process, when its trace began, the number of a call in it, and when one inside of that began.
type Identity = (u32, u64, u64, Option<u64>);

fn shown(values: &Values) -> Map<String, Value> {
    let mut shown = Map::new();
    values.for_each(|name, shape, value| {
        // The number of a stack says nothing outside its trace.
        if name != "stack" && name != "via" {
            let text = if shape == Shape::Hex { format!("{value:#x}") } else { value.to_string() };
            shown.insert(name.to_owned(), text.into());
        }
    });
    shown
}

/// Hands each wanted call on.
#[derive(Clone)]
struct Lister<R> {
    filter: CallFilter,
    /// The header of each process; `None` of one that is not wanted.
    processes: Vec<Option<Header>>,
    /// The calls inside of one that has not returned, by its process and its number. They follow it.
    inner: HashMap<(u32, u64), Vec<CallLine>>,
    each: R,
}

impl<R> Lister<R> {
    fn new(filter: CallFilter, each: R) -> Self {
        Self { filter, processes: Vec::new(), inner: HashMap::new(), each }
    }

    /// The line of a call; `None` if it is not wanted.
    fn line(&self, call: &FinishedCall<'_>) -> Option<CallLine> {
        let header = self.processes.get(call.process as usize)?.as_ref().filter(|_| self.filter.wants(call))?;
        Some(CallLine {
            begin_ns: call.from,
            took_ns: call.to.map(|to| to.saturating_sub(call.from)),
            host: header.host.clone(),
            pid: header.pid,
            rank: header.rank,
            executable: header.executable.clone(),
            tid: call.tid,
            call: call.number,
            inside: None,
            function: call.function.name(),
            arguments: shown(call.asked),
            answers: shown(call.answered),
            result: call.result.map(|result| result.text_of(call.function)),
            succeeded: call.result.is_some_and(ResultCode::is_success),
            trace_began: header.clock.monotonic_ns,
        })
    }
}

impl<R: Receiver> EventSink for Lister<R> {
    fn process(&mut self, began: &ProcessStart<'_>) {
        let header = began.header;
        let wanted = self.filter.wants_process(header.pid, header.rank);
        self.processes.push(wanted.then(|| header.clone()));
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        let inner = self.inner.remove(&(call.process, call.number)).unwrap_or_default();
        let inside = Some(call.function.name());
        let inner = inner.into_iter().map(|line| CallLine { inside, ..line });
        self.line(call).into_iter().chain(inner).for_each(|line| self.each.receive(line));
    }

    fn inner(&mut self, call: &FinishedCall<'_>) {
        if !self.filter.outer
            && let Some(line) = self.line(call)
        {
            self.inner.entry((call.process, call.number)).or_default().push(line);
        }
    }
}

/// Hands the calls of a run to `each`, in the order in which they returned; those that never returned come last. Calls
/// inside of another one follow it.
pub fn calls(
    paths: &[PathBuf],
    options: &Options,
    filter: CallFilter,
    each: impl FnMut(CallLine),
) -> Result<(), QuestionError> {
    let mut tracker = LifetimeTracker::new(Lister::new(filter, each));
    Analysis::run(paths, options, &mut tracker)?;
    Ok(())
}

/// Takes the calls of a list.
trait Receiver {
    fn receive(&mut self, line: CallLine);
}

impl<F: FnMut(CallLine)> Receiver for F {
    fn receive(&mut self, line: CallLine) {
        self(line);
    }
}

/// Calls that wait to be taken.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<Vec<CallLine>>>);

impl Receiver for Waiting {
    fn receive(&mut self, line: CallLine) {
        if let Ok(mut lines) = self.0.lock() {
            lines.push(line);
        }
    }
}

/// The calls of a run that goes on.
pub struct CallFollower {
    following: Following<LifetimeTracker<Lister<Waiting>>>,
    waiting: Waiting,
    /// The calls that were taken. When a trace is found that began earlier, everything is read again.
    taken: HashSet<Identity>,
}

impl CallFollower {
    /// Lists the calls that `filter` wants.
    pub fn new(filter: CallFilter) -> Self {
        let waiting = Waiting::default();
        let each = waiting.clone();
        let following = Following::new(move || LifetimeTracker::new(Lister::new(filter.clone(), each.clone())));
        Self { following, waiting, taken: HashSet::new() }
    }

    /// The calls that are new since the last time.
    pub fn take(&mut self, paths: &[PathBuf], options: &Options) -> Result<Vec<CallLine>, AnalysisError> {
        self.following.take_in(paths, options)?;
        let mut new = self.waiting.0.lock().map(|mut waiting| mem::take(&mut *waiting)).unwrap_or_default();
        new.retain(|line| self.taken.insert(line.identity()));
        Ok(new)
    }
}
