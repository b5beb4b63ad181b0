//! How a run stands: its judgement, its figures and who holds what, together, for whoever looks at it while it goes on.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use urscope_rules::{ProcessId, Tracker};
use urscope_schema::call::{Enter, Exit};

use super::{Holders, QuestionError, Stats, StatsCollector, VERSION, Watch};
use crate::{
    analysis::{Analysis, Following, Judgement, Observer, Options},
    lifetimes::LifetimeTracker,
    plain::plain_all,
};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`VERSION`].
    pub version: u32,
    /// When the last call began or returned, in nanoseconds since the first process of the run began.
    pub last_ns: u64,
    /// What `urscope check` says.
    pub judgement: Judgement,
    /// What `urscope stats` says.
    pub stats: Stats,
    /// What `urscope holders` says.
    pub holders: Holders,
}

/// What is held of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How much handle data is not put.
    pub handles: u64,
    /// How many opens are not closed.
    pub opens: u64,
    /// How many bytes that keeps from being reused, each allocation once.
    pub bytes: u64,
}

impl Snapshot {
    /// How many calls were seen, and how many of them were answered with an error.
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

    /// A copy in which no text steers a terminal.
    pub fn plain(&self) -> Option<Self> {
        plain_all(self)
    }
}

/// How a run stands.
pub fn snapshot(paths: &[PathBuf], options: &Options) -> Result<Snapshot, QuestionError> {
    let mut observers = observers();
    let analysis = Analysis::run(paths, options, &mut observers)?;
    Ok(Snapshot::of(analysis, observers))
}

/// A run whose snapshots are taken while it grows: only what is new is read for each.
pub struct SnapshotFollower(Following<Observers>);

impl Default for SnapshotFollower {
    fn default() -> Self {
        Self(Following::new(observers))
    }
}

impl SnapshotFollower {
    /// How the run stands by now.
    pub fn snapshot(&mut self, paths: &[PathBuf], options: &Options) -> Result<Snapshot, QuestionError> {
        self.0.take_in(paths, options)?;
        let (analysis, observers) = self.0.snapshot(paths, options)?;
        Ok(Snapshot::of(analysis, observers))
    }
}

/// Everybody who observes a run for a snapshot.
type Observers = (LifetimeTracker<StatsCollector>, (Watch, Clock));

fn observers() -> Observers {
    (LifetimeTracker::new(StatsCollector::new()), (Watch::default(), Clock::default()))
}

impl Snapshot {
    fn of(mut analysis: Analysis<'_>, (tracker, (watch, clock)): Observers) -> Self {
        let (stats, holders) = (tracker.into_sink().stats(), watch.holders(&mut analysis));
        Self { version: VERSION, last_ns: clock.last, judgement: analysis.judgement(), stats, holders }
    }
}

/// Looks at the time.
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
