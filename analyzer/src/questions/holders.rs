//! Who still holds what: everything that handle data is out of, or that is open, with who has it, how often, since when.

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
    /// The moment, in nanoseconds since the first process of the run began; none if each process is shown as it ended.
    pub at_ns: Option<u64>,
    /// How many bytes of memory that is meant here are kept from being reused, each allocation once.
    pub pinned_bytes: u64,
    /// The memory and the events, in the order in which they were got.
    pub held: Vec<Held>,
}

/// Memory or an event that handle data is out of, or that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// What its handle data is: `memory handle`, `physical memory handle` or `event handle`.
    pub kind: String,
    /// The fingerprint of its handle data, by which `urscope handle` finds it.
    pub fingerprint: String,
    /// Its address or handle in the producer.
    pub value: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// How much of its handle data is not put.
    pub handles: u64,
    /// The latest get.
    pub got: Location,
    /// How its producer ended; none at a moment in the middle of a run.
    pub producer_ended: Option<Ended>,
    /// Who has it open.
    pub holders: Vec<HeldBy>,
}

/// Who has something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldBy {
    /// What it is there, with its address.
    pub opened: String,
    /// How many opens are not closed.
    pub opens: u64,
    /// The latest of these.
    pub since: Location,
    /// EndReason that process ended; none at a moment in the middle of a run.
    pub ended: Option<Ended>,
}

/// The run was over before the moment that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the last record of the traces is of +{:.3} s; ask for an earlier moment than +{:.3} s", last.as_secs_f64(), at.as_secs_f64())]
pub struct TooLate {
    at: Duration,
    last: Duration,
}

/// Who holds what at the moment `at` after the run began; without one, what each process held when it ended, or holds
/// if it still runs.
pub fn holders(paths: &[PathBuf], options: &Options, at: Option<Duration>) -> Result<Holders, QuestionError> {
    let mut watch = Watch { at, ..Watch::default() };
    let mut analysis = Analysis::run(paths, options, &mut watch)?;
    if let Some(at) = at
        && !watch.seen
        && let Some(last) = watch.last
    {
        return Err(TooLate { at, last: Duration::from_nanos(last) }.into());
    }
    Ok(watch.holders(&mut analysis))
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

/// Looks at the tracker at one moment, or at each process's end.
#[derive(Clone, Default)]
pub struct Watch {
    at: Option<Duration>,
    /// When something happened last, in nanoseconds since the run began.
    last: Option<u64>,
    /// Whether the moment has come.
    seen: bool,
    held: BTreeMap<ExportId, Shared>,
    ended: HashMap<ProcessId, Ended>,
}

impl Watch {
    /// Who held what, when all was heard.
    pub fn holders(self, analysis: &mut Analysis<'_>) -> Holders {
        let Self { at, held, ended, .. } = self;
        let held: Vec<_> = held.into_values().map(|shared| show(analysis, &ended, shared)).collect();
        let pinned_bytes = held.iter().filter_map(|held| held.size).sum();
        Holders { version: VERSION, at_ns: at.map(|at| at.as_nanos() as u64), pinned_bytes, held }
    }
}

impl Observer for Watch {
    fn until(&mut self, tracker: &Tracker, at: u64) {
        let Some(moment) = self.at else { return };
        self.last = Some(at);
        if !self.seen && u128::from(at) > moment.as_nanos() {
            self.seen = true;
            self.held.extend(tracker.shared().into_iter().map(|shared| (shared.id, shared)));
        }
    }

    fn end(&mut self, tracker: &Tracker, who: ProcessId, _: u64, ended: Ended) {
        if self.at.is_some() {
            return;
        }
        self.ended.insert(who, ended);
        for mut shared in tracker.shared() {
            let mine = shared.producer == who && shared.handles > 0;
            shared.holders.retain(|holder| holder.process == who);
            if !mine && shared.holders.is_empty() {
                continue;
            }
            let holders = std::mem::take(&mut shared.holders);
            let handles = if mine { shared.handles } else { 0 };
            let kept = self.held.entry(shared.id).or_insert(Shared { handles: 0, ..shared });
            kept.handles += handles;
            kept.holders.extend(holders);
        }
    }
}
