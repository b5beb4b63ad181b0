//! What is still held: all memory and events with live handle data or openings, with the holders, their counts and times.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use urscope_rules::{ExportId, Holder, ProcessId, Shared, Tracker};

use super::{QuestionError, VERSION};
use crate::analysis::{Analysis, Ended, Location, Observer, Options};

/// What is held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holders {
    /// [`VERSION`].
    pub version: u32,
    /// The moment, in nanoseconds since the first process of the run began; `None` if the answer shows the end of each process.
    pub at_ns: Option<u64>,
    /// The bytes of memory that cannot be reused because they are held; each allocation counts once.
    pub pinned_bytes: u64,
    /// The memory and the events, in the order in which they were got.
    pub held: Vec<Held>,
}

/// Memory or an event with live handle data or openings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The kind of its handle data: `memory handle`, `physical memory handle` or `event handle`.
    pub kind: String,
    /// The fingerprint of its handle data, by which `urscope handle` finds it.
    pub fingerprint: String,
    /// Its address or handle in the producer.
    pub value: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The number of its handle data that are not put.
    pub handles: u64,
    /// The latest get.
    pub got: Location,
    /// How its producer ended; `None` at a moment in the middle of a run.
    pub producer_ended: Option<Ended>,
    /// The processes that have it open.
    pub holders: Vec<HeldBy>,
}

/// A process that has something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldBy {
    /// The kind and address of the opening in this process.
    pub opened: String,
    /// The number of opens that are not closed.
    pub opens: u64,
    /// The latest of these opens.
    pub since: Location,
    /// How the process ended; `None` at a moment in the middle of a run.
    pub ended: Option<Ended>,
}

/// The error for a moment after the end of the run.
#[derive(Debug, thiserror::Error)]
#[error("the last record of the traces is at +{:.3} s; ask for an earlier moment than +{:.3} s", last.as_secs_f64(), at.as_secs_f64())]
pub struct TooLate {
    at: Duration,
    last: Duration,
}

/// What is held at the moment `at` after the run began. Without `at`, what each process held when it ended, or holds now if it
/// still runs.
pub fn holders(paths: &[PathBuf], options: &Options, at: Option<Duration>) -> Result<Holders, QuestionError> {
    let mut collector = HoldersCollector { at, ..HoldersCollector::default() };
    let mut analysis = Analysis::run(paths, options, &mut collector)?;
    if let Some(at) = at
        && !collector.reached
        && let Some(last) = collector.last
    {
        return Err(TooLate { at, last: Duration::from_nanos(last) }.into());
    }
    Ok(collector.holders(&mut analysis))
}

fn show(analysis: &mut Analysis<'_>, ended: &HashMap<ProcessId, Ended>, shared: Shared) -> Held {
    let held_by = |holder: Holder| HeldBy {
        opened: holder.opened.to_string(),
        opens: holder.opens,
        since: analysis.location(holder.since),
        ended: ended.get(&holder.process).copied(),
    };
    let holders = shared.holders.into_iter().map(held_by).collect();
    Held {
        kind: shared.kind.noun().to_owned(),
        fingerprint: format!("{:#x}", shared.fingerprint),
        value: shared.value.map(|value| format!("{value:#x}")),
        size: shared.size,
        handles: shared.handles,
        got: analysis.location(shared.got),
        producer_ended: ended.get(&shared.producer).copied(),
        holders,
    }
}

/// Collects what is held at one moment, or at the end of each process.
#[derive(Clone, Default)]
pub struct HoldersCollector {
    at: Option<Duration>,
    /// The time of the latest event, in nanoseconds since the run began.
    last: Option<u64>,
    /// Whether an event after the moment was seen.
    reached: bool,
    held: BTreeMap<ExportId, Shared>,
    ended: HashMap<ProcessId, Ended>,
}

impl HoldersCollector {
    /// The answer, after the analysis.
    pub fn holders(self, analysis: &mut Analysis<'_>) -> Holders {
        let Self { at, held, ended, .. } = self;
        let held: Vec<_> = held.into_values().map(|shared| show(analysis, &ended, shared)).collect();
        let pinned_bytes = held.iter().filter_map(|held| held.size).sum();
        Holders { version: VERSION, at_ns: at.map(|at| at.as_nanos() as u64), pinned_bytes, held }
    }
}

impl Observer for HoldersCollector {
    fn until(&mut self, tracker: &Tracker, at: u64) {
        let Some(moment) = self.at else { return };
        self.last = Some(at);
        if !self.reached && u128::from(at) > moment.as_nanos() {
            self.reached = true;
            self.held.extend(tracker.shared().into_iter().map(|shared| (shared.id, shared)));
        }
    }

    fn end(&mut self, tracker: &Tracker, who: ProcessId, _: u64, ended: Ended) {
        if self.at.is_some() {
            return;
        }
        self.ended.insert(who, ended);
        for mut shared in tracker.shared() {
            let has_handles = shared.producer == who && shared.handles > 0;
            shared.holders.retain(|holder| holder.process == who);
            if !has_handles && shared.holders.is_empty() {
                continue;
            }
            let holders = std::mem::take(&mut shared.holders);
            let handles = if has_handles { shared.handles } else { 0 };
            let kept = self.held.entry(shared.id).or_insert(Shared { handles: 0, ..shared });
            kept.handles += handles;
            kept.holders.extend(holders);
        }
    }
}
