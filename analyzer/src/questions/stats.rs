//! What was called how often and how long it took, and how much was shared over time.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    path::PathBuf,
};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use urscope_rules::{ProcessId, World};
use urscope_schema::{
    api::Function,
    call::{Enter, Exit, Nanos},
    trace::records::Header,
};

use super::{QuestionError, VERSION};
use crate::judge::{Hearing, Listener, Options};

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// [`VERSION`].
    pub version: u32,
    /// Every function that a process called, in the order of processes and functions.
    pub calls: Vec<Calls>,
    /// What was shared, over time: at most [`SAMPLES`] moments.
    pub shared: Vec<Sample>,
    /// The moment at which most bytes were pinned.
    pub peak: Sample,
}

/// The calls of one function in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Its executable.
    pub executable: String,
    /// The function.
    pub function: String,
    /// How many calls began.
    pub calls: u64,
    /// How many never returned.
    pub unreturned: u64,
    /// How many were answered with each error.
    pub errors: BTreeMap<String, u64>,
    /// How long those took that returned; the shim's own work is not in it.
    pub latency: Latency,
}

/// How long calls took, in nanoseconds: the percentiles are exact to two digits, the rest to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min_ns: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// Nine of ten took no longer.
    pub p90_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All together.
    pub total_ns: u64,
}

/// What was shared at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// In nanoseconds since the first process of the host began.
    pub time_ns: u64,
    /// Handle data that was got and not put, by kind.
    pub handles: BTreeMap<String, u64>,
    /// What was open, by kind.
    pub opened: BTreeMap<String, u64>,
    /// The bytes of memory that handle data was out of, or that was open somewhere.
    pub pinned_bytes: u64,
}

/// How many moments of a run are kept.
pub const SAMPLES: usize = 512;

/// The figures of a run.
pub fn stats(paths: &[PathBuf], options: &Options) -> Result<Stats, QuestionError> {
    let mut clerk = Clerk { step: 1, ..Clerk::default() };
    Hearing::hold(paths, options, &mut clerk)?;
    let mut calls = Vec::new();
    for (process, columns) in &clerk.processes {
        calls.extend(columns.iter().map(|(function, column)| column.show(process, *function)));
    }
    Ok(Stats { version: VERSION, calls, shared: clerk.samples, peak: clerk.peak })
}

/// Whose figures.
struct Who {
    pid: u32,
    host: String,
    executable: String,
}

/// The figures of one function in one process.
struct Column {
    calls: u64,
    returned: u64,
    errors: BTreeMap<String, u64>,
    took: Histogram<u64>,
    shortest: u64,
    longest: u64,
    total: u64,
}

impl Column {
    fn new() -> Option<Self> {
        let took = Histogram::new(2).ok()?;
        Some(Self { calls: 0, returned: 0, errors: BTreeMap::new(), took, shortest: u64::MAX, longest: 0, total: 0 })
    }

    fn show(&self, who: &Who, function: Function) -> Calls {
        let at = |quantile| self.took.value_at_quantile(quantile).clamp(self.shortest, self.longest);
        let latency = match self.took.len() {
            0 => Latency::default(),
            _ => Latency {
                min_ns: self.shortest,
                p50_ns: at(0.5),
                p90_ns: at(0.9),
                p99_ns: at(0.99),
                max_ns: self.longest,
                total_ns: self.total,
            },
        };
        Calls {
            pid: who.pid,
            host: who.host.clone(),
            executable: who.executable.clone(),
            function: function.name().to_owned(),
            calls: self.calls,
            unreturned: self.calls - self.returned,
            errors: self.errors.clone(),
            latency,
        }
    }
}

/// Counts.
#[derive(Default)]
struct Clerk {
    processes: Vec<(Who, BTreeMap<Function, Column>)>,
    under_way: HashMap<(ProcessId, u64), Nanos>,
    starts: HashMap<u64, Nanos>,
    samples: Vec<Sample>,
    peak: Sample,
    /// A look at the world costs as much as there is in it: it is paid for by so many calls.
    due: u64,
    /// Every so many looks one is kept.
    step: u64,
    looks: u64,
}

impl Clerk {
    fn column(&mut self, who: ProcessId, function: Function) -> Option<&mut Column> {
        let columns = &mut self.processes.get_mut(who.0 as usize)?.1;
        match columns.entry(function) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) => Some(new.insert(Column::new()?)),
        }
    }

    fn look(&mut self, world: &World, who: ProcessId, time: Nanos) {
        if self.due > 0 {
            self.due -= 1;
            return;
        }
        let shared = world.shared();
        self.due = shared.len() as u64 / 8;
        let host = world.process(who).map_or(0, |process| process.host);
        let start = self.starts.get(&host).copied().unwrap_or_default();
        let mut sample = Sample { time_ns: time.0.saturating_sub(start.0), ..Sample::default() };
        for shared in &shared {
            if shared.handles > 0 {
                *sample.handles.entry(shared.kind.noun().to_owned()).or_default() += shared.handles;
            }
            for holder in &shared.holders {
                *sample.opened.entry(holder.opened.kind.noun().to_owned()).or_default() += holder.opens;
            }
            sample.pinned_bytes += shared.size.unwrap_or_default();
        }
        if sample.pinned_bytes > self.peak.pinned_bytes {
            self.peak = sample.clone();
        }
        if self.looks.is_multiple_of(self.step) {
            self.samples.push(sample);
            if self.samples.len() > SAMPLES {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.step *= 2;
            }
        }
        self.looks += 1;
    }
}

impl Listener for Clerk {
    fn begin(&mut self, world: &World, who: ProcessId, header: &Header) {
        let (host, executable) = (header.host.clone(), header.executable.clone());
        self.processes.push((Who { pid: header.pid, host, executable }, BTreeMap::new()));
        if let Some(process) = world.process(who) {
            self.starts.entry(process.host).or_insert(Nanos(header.clock.monotonic_ns));
        }
    }

    fn enter(&mut self, _: &World, who: ProcessId, enter: &Enter) {
        self.under_way.insert((who, enter.call), enter.time);
        if let Some(column) = self.column(who, enter.function) {
            column.calls += 1;
        }
    }

    fn exit(&mut self, world: &World, who: ProcessId, exit: &Exit) {
        let began = self.under_way.remove(&(who, exit.call));
        if let (Some(began), Some(column)) = (began, self.column(who, exit.function)) {
            let took = exit.time.0.saturating_sub(began.0);
            column.returned += 1;
            column.total += took;
            column.shortest = column.shortest.min(took);
            column.longest = column.longest.max(took);
            // It grows with what it is told; only a time of centuries does not fit.
            let _ = column.took.record(took);
            if !exit.result.is_success() {
                *column.errors.entry(exit.result.to_string()).or_default() += 1;
            }
        }
        if exit.function.is_ipc() {
            self.look(world, who, exit.time);
        }
    }
}
