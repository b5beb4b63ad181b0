//! A snapshot of a run: its judgement, its statistics and what is held, for commands that show a growing run.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use urscope_rules::{ProcessId, Tracker};
use urscope_schema::call::{Enter, Exit};

use super::{Holders, HoldersCollector, QuestionError, Stats, StatsCollector, VERSION};
use crate::analysis::{Analysis, Following, Judgement, Observer, Options};
use crate::{lifetimes::LifetimeTracker, plain::plain_all};

/// The state of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// When the last call began or returned, in nanoseconds since the first process of the run began.
    pub last_ns: u64,
    /// The answer of `urscope check`.
    pub judgement: Judgement,
    /// The answer of `urscope stats`.
    pub stats: Stats,
    /// The answer of `urscope holders`.
    pub holders: Holders,
}

/// What is held of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of handle data that are not put.
    pub handles: u64,
    /// The number of opens that are not closed.
    pub opens: u64,
    /// The bytes of memory that cannot be reused because they are held; each allocation counts once.
    pub bytes: u64,
}

impl Snapshot {
    /// The number of calls, and the number of calls that returned an error.
    pub fn calls(&self) -> (u64, u64) {
        let errors = self.stats.calls.iter().flat_map(|calls| calls.errors.values()).sum();
        (self.judgement.calls.values().sum(), errors)
    }

    /// What is held, by the kind of its handle data.
    pub fn amounts(&self) -> BTreeMap<&str, Amount> {
        let mut amounts = BTreeMap::<_, Amount>::new();
        for held in &self.holders.held {
            let amount = amounts.entry(held.kind.as_str()).or_default();
            amount.handles += held.handles;
            amount.opens += held.holders.iter().map(|holder| holder.opens).sum::<u64>();
            amount.bytes += held.size.unwrap_or_default();
        }
        amounts
    }

    /// A copy with [`plain`](crate::plain::plain) applied to all texts. `None` if it cannot be converted to JSON.
    pub fn plain(&self) -> Option<Self> {
        plain_all(self)
    }
}

/// A snapshot of a run.
pub fn snapshot(paths: &[PathBuf], options: &Options) -> Result<Snapshot, QuestionError> {
    let mut observers = observers();
    let analysis = Analysis::run(paths, options, &mut observers)?;
    Ok(Snapshot::from_analysis(analysis, observers))
}

/// Takes snapshots of a growing run. Each snapshot reads only what is new.
pub struct SnapshotFollower(Following<Observers>);

impl Default for SnapshotFollower {
    fn default() -> Self {
        Self(Following::new(observers))
    }
}

impl SnapshotFollower {
    /// A snapshot of the run as it is now.
    pub fn snapshot(&mut self, paths: &[PathBuf], options: &Options) -> Result<Snapshot, QuestionError> {
        self.0.take_in(paths, options)?;
        let (analysis, observers) = self.0.snapshot(paths, options)?;
        Ok(Snapshot::from_analysis(analysis, observers))
    }
}

/// The observers for a snapshot.
type Observers = (LifetimeTracker<StatsCollector>, (HoldersCollector, Clock));

fn observers() -> Observers {
    (LifetimeTracker::new(StatsCollector::new()), (HoldersCollector::default(), Clock::default()))
}

impl Snapshot {
    fn from_analysis(mut analysis: Analysis<'_>, (tracker, (collector, clock)): Observers) -> Self {
        let stats = tracker.into_sink().stats().with_roles(&mut analysis);
        let holders = collector.holders(&mut analysis);
        Self { version: VERSION, last_ns: clock.last, judgement: analysis.judgement(), stats, holders }
    }
}

/// Keeps the time of the last call event.
#[derive(Clone, Default)]
struct Clock {
    last: u64,
}

impl Observer for Clock {
    fn enter(&mut self, _: &Tracker, _: ProcessId, at: u64, _: &Enter) {
        self.last = self.last.max(at);
    }

    fn exit(&mut self, _: &Tracker, _: ProcessId, at: u64, _: &Exit) {
        self.last = self.last.max(at);
    }
}
