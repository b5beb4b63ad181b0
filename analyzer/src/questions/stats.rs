//! Statistics of a run: the number and duration of calls, and how much was shared over time.

use std::collections::{BTreeMap, btree_map::Entry};
use std::path::PathBuf;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use urscope_rules::ProcessId;
use urscope_schema::{api::Function, handle::Kind, host::ranks::process_name, trace::records::Header};

use super::{QuestionError, VERSION};
use crate::analysis::{Analysis, Options};
use crate::lifetimes::{
    Counts, EndReason, EventSink, FinishedCall, Lifetime, LifetimeKind, LifetimeTracker, LiveCounts, PinnedBytes,
    ProcessStart,
};

/// The statistics of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// [`VERSION`].
    pub version: u32,
    /// The calls of each function in each process, in the order of processes and functions.
    pub calls: Vec<Calls>,
    /// The calls of each function in all processes together. The process of each is the first one.
    pub totals: Vec<Calls>,
    /// What each consumer opened from each producer, in the order of producers and consumers.
    pub shares: Vec<Share>,
    /// What was shared over time, in at most [`SAMPLES`] samples: the moment with the most pinned bytes of each
    /// interval, and the last moment.
    pub shared: Vec<Sample>,
    /// The moment with the most pinned bytes.
    pub peak: Sample,
}

impl Stats {
    /// The statistics with the calls of at most `limit` processes, in the order of ranks and pids; the totals stay.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Self {
        let mut processes: Vec<_> = self.calls.iter().map(|calls| (calls.who.rank, calls.who.process)).collect();
        processes.sort_unstable();
        processes.dedup();
        processes.truncate(limit);
        self.calls.retain(|calls| processes.contains(&(calls.who.rank, calls.who.process)));
        self
    }

    /// The statistics with the roles of the processes.
    #[must_use]
    pub fn with_roles(mut self, analysis: &mut Analysis<'_>) -> Self {
        let sides = self.shares.iter_mut().flat_map(|share| [&mut share.producer, &mut share.consumer]);
        for who in self.calls.iter_mut().chain(&mut self.totals).map(|calls| &mut calls.who).chain(sides) {
            who.role = analysis.role(ProcessId(who.process));
        }
        self
    }
}

/// What one process opened from another process, or from itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The process that got the handle data.
    pub producer: Who,
    /// The process that opened it.
    pub consumer: Who,
    /// The kind of the openings: `mapping`, `physical memory` or `event`.
    pub kind: String,
    /// The number of different exports that were opened. All handle data from one pointer of one allocation is one
    /// export.
    pub handles: u64,
    /// The number of opens.
    pub opens: u64,
    /// The number of opens that were not closed when the consumer ended, or are not closed if it still runs.
    pub open: u64,
    /// The bytes that are accessible through the openings; each export counts once.
    pub bytes: u64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Who {
    /// Its number, in the order in which processes began, counted from 0.
    pub process: u32,
    /// Its process id on its host.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// Its executable.
    pub executable: String,
    /// Its rank, if a launcher assigned one.
    pub rank: Option<u32>,
    /// Its [`ProcessSummary::role`](crate::analysis::ProcessSummary::role).
    pub role: Option<String>,
}

impl Who {
    /// Its name: `rank 7 (pid 12510)`, `producer (pid 12510)`, or with the program's name.
    pub fn name(&self) -> String {
        process_name(self.role.as_deref().unwrap_or(&self.executable), self.pid, self.rank)
    }
}

/// The calls of one function in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The process.
    #[serde(flatten)]
    pub who: Who,
    /// The function.
    pub function: String,
    /// The number of calls that began.
    pub calls: u64,
    /// The number of calls that never returned.
    pub unreturned: u64,
    /// The number of calls that returned each error.
    pub errors: BTreeMap<String, u64>,
    /// The durations of the calls that returned, without the shim's own work.
    pub latency: Latency,
}

/// The durations of calls in nanoseconds. Percentiles are exact to two digits, the other values are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The minimum.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
    /// The sum.
    pub total_ns: u64,
}

/// What was shared at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The moment, in nanoseconds since the first process of the run began.
    pub time_ns: u64,
    /// The number of handle data that were got and not put, by kind.
    pub handles: BTreeMap<String, u64>,
    /// The number of openings, by kind.
    pub opened: BTreeMap<String, u64>,
    /// The bytes of memory with live handle data or openings.
    pub pinned_bytes: u64,
}

/// The maximum number of samples of a run.
pub const SAMPLES: usize = 512;

/// The statistics of a run.
pub fn stats(paths: &[PathBuf], options: &Options) -> Result<Stats, QuestionError> {
    let mut tracker = LifetimeTracker::new(StatsCollector::new());
    let mut analysis = Analysis::run(paths, options, &mut tracker)?;
    Ok(tracker.into_sink().stats().with_roles(&mut analysis))
}

/// The statistics of one function in one process.
#[derive(Clone)]
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

    /// Adds the calls of another process.
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.returned += other.returned;
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
        // Both resize themselves.
        let _ = self.took.add(&other.took);
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
        self.total += other.total;
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
            who: who.clone(),
            function: function.name().to_owned(),
            calls: self.calls,
            unreturned: self.calls - self.returned,
            errors: self.errors.clone(),
            latency,
        }
    }
}

/// What one process opened from another.
#[derive(Clone, Default)]
struct Between {
    handles: u64,
    opens: u64,
    open: u64,
    bytes: u64,
}

/// How much was shared at one moment.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Level {
    at: u64,
    counts: Counts,
    pinned: u64,
}

impl Level {
    /// The key by which the highest moment of an interval is chosen: first the pinned bytes, then the live counts.
    fn height(&self) -> (u64, u64) {
        (self.pinned, self.counts.by_kind().map(|(_, count)| count).sum())
    }

    fn show(&self) -> Sample {
        let mut sample = Sample { time_ns: self.at, pinned_bytes: self.pinned, ..Sample::default() };
        for (kind, count) in self.counts.by_kind().filter(|(_, count)| *count > 0) {
            let of = if kind.shares().is_some() { &mut sample.handles } else { &mut sample.opened };
            of.insert(kind.noun().to_owned(), count);
        }
        sample
    }
}

/// Collects the statistics of a run.
#[derive(Clone, Default)]
pub struct StatsCollector {
    processes: Vec<(Who, BTreeMap<Function, Column>)>,
    between: BTreeMap<(u32, u32, Kind), Between>,
    /// The live counts of all processes together.
    live: LiveCounts,
    pinned: PinnedBytes,
    /// The highest level of each interval in which the level changed.
    levels: Vec<Level>,
    now: Level,
    peak: Level,
    /// The length of an interval, in nanoseconds.
    interval: u64,
}

impl StatsCollector {
    /// A collector in its initial state.
    pub fn new() -> Self {
        Self { interval: 1, ..Self::default() }
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        let mut calls = Vec::new();
        for (process, columns) in &self.processes {
            calls.extend(columns.iter().map(|(function, column)| column.show(process, *function)));
        }
        let mut together: BTreeMap<Function, Column> = BTreeMap::new();
        for (function, column) in self.processes.iter().flat_map(|(_, columns)| columns) {
            match together.entry(*function) {
                Entry::Occupied(mut known) => known.get_mut().add(column),
                Entry::Vacant(new) => drop(new.insert(column.clone())),
            }
        }
        let first = self.processes.first().map(|(who, _)| who.clone()).unwrap_or_default();
        let totals = together.iter().map(|(function, column)| column.show(&first, *function)).collect();
        let whose = |process: u32| self.processes.get(process as usize).map(|(who, _)| who.clone()).unwrap_or_default();
        let share = |((producer, consumer, kind), between): (&(u32, u32, Kind), &Between)| {
            let Between { handles, opens, open, bytes } = *between;
            let producer = whose(*producer);
            let consumer = whose(*consumer);
            let kind = kind.noun().to_owned();
            Share { producer, consumer, kind, handles, opens, open, bytes }
        };
        let shares = self.between.iter().map(share).collect();
        let end = self.levels.last().is_some_and(|last| *last != self.now).then_some(&self.now);
        let shared = self.levels.iter().chain(end).map(Level::show).collect();
        Stats { version: VERSION, calls, totals, shares, shared, peak: self.peak.show() }
    }

    fn column(&mut self, process: u32, function: Function) -> Option<&mut Column> {
        let columns = &mut self.processes.get_mut(process as usize)?.1;
        match columns.entry(function) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) => Some(new.insert(Column::new()?)),
        }
    }

    fn between(&mut self, life: &Lifetime) -> Option<&mut Between> {
        let producer = life.producer.filter(|_| life.lane == LifetimeKind::Opening)?;
        Some(self.between.entry((producer, life.process, life.kind)).or_default())
    }

    fn keep(&mut self, level: Level) {
        if level.pinned > self.peak.pinned {
            self.peak = level;
        }
        self.now = level;
        self.raise(level);
        // Intervals of equal length keep quiet periods visible next to busy ones. One sample is reserved for the end.
        while self.levels.len() >= SAMPLES {
            self.interval *= 2;
            for level in std::mem::take(&mut self.levels) {
                self.raise(level);
            }
        }
    }

    fn raise(&mut self, level: Level) {
        match self.levels.last_mut() {
            Some(last) if last.at / self.interval == level.at / self.interval => {
                if level.height() >= last.height() {
                    *last = level;
                }
            }
            _ => self.levels.push(level),
        }
    }
}

impl EventSink for StatsCollector {
    fn process(&mut self, began: &ProcessStart<'_>) {
        let Header { pid, host, executable, rank, .. } = began.header;
        let host = host.clone();
        let executable = executable.clone();
        let who = Who { process: began.process, pid: *pid, host, executable, rank: *rank, role: None };
        self.processes.push((who, BTreeMap::new()));
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        let Some(column) = self.column(call.process, call.function) else { return };
        column.calls += 1;
        let (Some(to), Some(result)) = (call.to, call.result) else { return };
        let took = to.saturating_sub(call.from);
        column.returned += 1;
        column.total += took;
        column.shortest = column.shortest.min(took);
        column.longest = column.longest.max(took);
        // The histogram resizes itself. Only a duration of centuries does not fit.
        let _ = column.took.record(took);
        if !result.is_success() {
            *column.errors.entry(result.text_of(call.function)).or_default() += 1;
        }
    }

    fn birth(&mut self, life: &Lifetime) {
        self.live.born(life);
        self.pinned.born(life);
        if let Some(between) = self.between(life) {
            between.opens += 1;
            between.open += 1;
            if life.first {
                between.handles += 1;
                between.bytes += life.bytes.unwrap_or_default();
            }
        }
    }

    fn death(&mut self, life: &Lifetime, _: u64, how: EndReason) {
        self.live.died(life);
        self.pinned.died(life);
        // An opening that ends with its process counts as left open.
        if !matches!(how, EndReason::With(_))
            && let Some(between) = self.between(life)
        {
            between.open -= 1;
        }
    }

    fn counts(&mut self, _: u32, at: u64, _: &Counts) {
        self.keep(Level { at, counts: *self.live.counts(), pinned: self.pinned.bytes() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_periods_are_kept_next_to_busy_ones() {
        let mut collector = StatsCollector::new();
        let quiet = [(1_000, 5), (400_000, 0), (700_000, 9)];
        let busy = (0..100_000).map(|moment| (900_000 + moment, moment % 7));
        for (at, pinned) in quiet.into_iter().chain(busy) {
            collector.keep(Level { at, pinned, ..Level::default() });
        }
        let stats = collector.stats();
        let shown: Vec<_> = stats.shared.iter().map(|sample| (sample.time_ns, sample.pinned_bytes)).collect();
        assert_eq!(shown.get(..3), Some(quiet.as_slice()));
        assert_eq!(shown.last(), Some(&(999_999, 99_999 % 7)));
        assert!(shown.len() <= SAMPLES && shown.len() > 32 && shown.is_sorted(), "{}", shown.len());
        assert_eq!(stats.peak.pinned_bytes, 9);
    }
}
