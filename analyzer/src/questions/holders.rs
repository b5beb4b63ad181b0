//! What is still held: all memory and events with live handle data or openings, with the holders, their counts and
//! times.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::{cmp::Reverse, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use urscope_rules::tracker::fact::{Fact, What};
use urscope_rules::{ExportId, Holder, Place, ProcessId, Shared, Tracker};
use urscope_schema::handle::{Handle, Kind};

use super::{QuestionError, VERSION};
use crate::analysis::{Analysis, Ended, Frame, Location, Observer, Options};

/// What is held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holders {
    /// [`VERSION`].
    pub version: u32,
    /// The moment, in nanoseconds since the first process of the run began; `None` if the answer shows the end of each
    /// process.
    pub at_ns: Option<u64>,
    /// The bytes of memory that cannot be reused because they are held; each allocation counts once.
    pub pinned_bytes: u64,
    /// The memory and the events, in the order in which they were got.
    pub held: Vec<Held>,
    /// The number of those that a limit leaves out of `held`.
    pub more: u64,
    /// What a process left when it ended and `held` does not have, because no traced process got its handle data: the
    /// first [`LOST`] objects.
    pub lost: Vec<Lost>,
    /// The number of all such objects.
    pub lost_count: u64,
}

/// The maximum number of lost objects that an answer lists.
pub const LOST: usize = 200;

/// An object that a process left when it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Its kind and its address or handle.
    pub object: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data.
    pub fingerprint: Option<String>,
    /// Where it was got or opened.
    pub since: Location,
    /// Where the last reference to its context was released, if that was before the process ended.
    pub released: Option<Location>,
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
    /// The calls that wait for it on the host, and have not returned.
    pub waits: Vec<Location>,
}

/// A process that has something open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldBy {
    /// The kind and address of the opening in this process.
    pub opened: String,
    /// The number of opens that are not closed.
    pub opens: u64,
    /// The first of these opens.
    pub since: Location,
    /// How the process ended; `None` at a moment in the middle of a run.
    pub ended: Option<Ended>,
    /// Where the last reference to its context was released, if that was before the process ended: it cannot be closed
    /// since then.
    pub released: Option<Location>,
}

/// What the parts of an answer have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The function of the program that got or opened it.
    Site,
    /// The rank.
    Rank,
    /// The process.
    Process,
}

/// What is held, in parts: by rank and pid, or, of places in the program, the one that pins the most first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HoldersBy {
    /// [`VERSION`].
    pub version: u32,
    /// The moment, as in [`Holders::at_ns`].
    pub at_ns: Option<u64>,
    /// The number of objects that are held.
    pub objects: u64,
    /// As in [`Holders::pinned_bytes`].
    pub pinned_bytes: u64,
    /// The number of parts that are left out of `parts`.
    pub more: u64,
    /// The parts.
    pub parts: Vec<Part>,
}

/// What one part holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The function and line, the rank, or the process.
    pub name: String,
    /// The number of its handle data that are not put.
    pub handles: u64,
    /// The number of its opens that are not closed.
    pub opens: u64,
    /// The bytes that it pins; memory that several parts pin counts in each.
    pub bytes: u64,
}

impl Holders {
    /// The answer with at most `limit` objects; the totals stay.
    #[must_use]
    pub fn limited(mut self, limit: usize) -> Self {
        self.more = self.held.len().saturating_sub(limit) as u64;
        self.held.truncate(limit);
        self.lost.truncate(limit);
        self
    }

    /// The answer in parts, at most `limit` of them.
    pub fn by(&self, by: By, limit: usize) -> HoldersBy {
        let name = |side: &Location| match by {
            By::Site => side.call_site().map_or_else(|| "unknown place".to_owned(), Frame::brief),
            By::Rank => side.rank.map_or_else(|| "no rank".to_owned(), |rank| format!("rank {rank}")),
            By::Process => side.process(),
        };
        let mut parts: BTreeMap<(Option<u32>, String), Part> = BTreeMap::new();
        for held in &self.held {
            let size = held.size.unwrap_or_default();
            let got = (held.handles > 0).then_some((&held.got, held.handles, 0));
            let opened = held.holders.iter().map(|holder| (&holder.since, 0, holder.opens));
            let mut counted = BTreeSet::new();
            for (side, handles, opens) in got.into_iter().chain(opened) {
                let key = (side.rank.filter(|_| by != By::Site), name(side));
                let part = parts.entry(key.clone()).or_insert_with(|| Part { name: key.1.clone(), ..Part::default() });
                part.handles += handles;
                part.opens += opens;
                part.bytes += if counted.insert(key) { size } else { 0 };
            }
        }
        let mut parts: Vec<Part> = parts.into_values().collect();
        if by == By::Site {
            parts.sort_by_key(|part| Reverse((part.bytes, part.opens + part.handles)));
        }
        let more = parts.len().saturating_sub(limit) as u64;
        parts.truncate(limit);
        let objects = self.held.len() as u64;
        let pinned_bytes = self.pinned_bytes;
        HoldersBy { version: VERSION, at_ns: self.at_ns, objects, pinned_bytes, more, parts }
    }
}

/// What is held at the moment `at` after the run began. Without `at`, what each process held when it ended, or holds
/// now if it still runs.
pub fn holders(paths: &[PathBuf], options: &Options, at: Option<Duration>) -> Result<Holders, QuestionError> {
    let mut collector = HoldersCollector { at, ..HoldersCollector::default() };
    let mut analysis = Analysis::run(paths, options, &mut collector)?;
    if let Some(at) = at
        && !collector.reached
        && let Some(last) = collector.last
    {
        return Err(QuestionError::TooLate { at, last: Duration::from_nanos(last) });
    }
    Ok(collector.holders(&mut analysis))
}

fn show(
    analysis: &mut Analysis<'_>,
    ended: &HashMap<ProcessId, Ended>,
    open: &HashMap<(ProcessId, Handle), Option<Place>>,
    shared: Shared,
) -> Held {
    let held_by = |holder: Holder| HeldBy {
        opened: holder.opened.to_string(),
        opens: holder.opens,
        since: analysis.location(holder.since),
        ended: ended.get(&holder.process).copied(),
        released: open.get(&(holder.process, holder.opened)).copied().flatten().map(|at| analysis.location(at)),
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
        waits: shared.waits.into_iter().map(|wait| analysis.location(wait)).collect(),
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
    /// What processes that have ended had open, and where its context was released.
    open: HashMap<(ProcessId, Handle), Option<Place>>,
    lost: Vec<LostObject>,
    lost_count: u64,
}

/// An object that a process left when it ended.
#[derive(Clone)]
struct LostObject {
    object: Handle,
    size: Option<u64>,
    fingerprint: Option<u64>,
    since: Place,
    released: Option<Place>,
    /// Whether it belongs to what a traced process got.
    is_known: bool,
}

impl LostObject {
    /// What a fact says of such an object, if it does.
    fn from_fact(what: &What<'_>) -> Option<Self> {
        let (left, object, size, fingerprint, since, is_known) = match what {
            What::LeftHandle(left, object, data) => {
                (left, *object, data.size, data.fingerprint, data.born, data.export.is_some())
            }
            What::LeftMapping(left, pointer, mapping) => {
                let object = Handle { kind: Kind::Mapping, value: *pointer };
                (left, object, mapping.size, mapping.fingerprint, mapping.first_open()?, false)
            }
            What::LeftRange(left, start, range) => {
                let object = Handle { kind: Kind::Mapping, value: *start };
                (left, object, Some(range.end - start), None, range.place, false)
            }
            What::LeftDescriptor(left, _, descriptor) => {
                (left, descriptor.memory, descriptor.size, None, descriptor.got, false)
            }
            What::LeftObject(left, what, object) => (left, *what, object.size, object.fingerprint, object.born, false),
            _ => return None,
        };
        (!left.excused).then_some(Self { object, size, fingerprint, since, released: left.released, is_known })
    }

    fn show(self, analysis: &mut Analysis<'_>) -> Lost {
        Lost {
            object: self.object.to_string(),
            size: self.size,
            fingerprint: self.fingerprint.map(|bytes| format!("{bytes:#x}")),
            since: analysis.location(self.since),
            released: self.released.map(|at| analysis.location(at)),
        }
    }
}

impl HoldersCollector {
    /// The answer, after the analysis.
    pub fn holders(self, analysis: &mut Analysis<'_>) -> Holders {
        let Self { at, held, ended, open, lost, lost_count, .. } = self;
        let held: Vec<_> = held.into_values().map(|shared| show(analysis, &ended, &open, shared)).collect();
        let pinned_bytes = held.iter().filter_map(|held| held.size).sum();
        let lost = lost.into_iter().map(|lost| lost.show(analysis)).collect();
        Holders {
            version: VERSION,
            at_ns: at.map(|at| at.as_nanos() as u64),
            pinned_bytes,
            held,
            more: 0,
            lost,
            lost_count,
        }
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

    /// What a process leaves comes after its end.
    fn fact(&mut self, _: u64, fact: &Fact<'_>) {
        let Some(lost) = LostObject::from_fact(&fact.what).filter(|_| self.at.is_none()) else { return };
        if let Some(released) = self.open.get_mut(&(lost.since.process, lost.object)) {
            *released = lost.released;
        } else if !lost.is_known {
            self.lost_count += 1;
            if self.lost.len() < LOST {
                self.lost.push(lost);
            }
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
            shared.waits.retain(|wait| wait.process == who);
            if !has_handles && shared.holders.is_empty() && shared.waits.is_empty() {
                continue;
            }
            let holders = std::mem::take(&mut shared.holders);
            let waits = std::mem::take(&mut shared.waits);
            self.open.extend(holders.iter().map(|holder| ((who, holder.opened), None)));
            let handles = if has_handles { shared.handles } else { 0 };
            let kept = self.held.entry(shared.id).or_insert(Shared { handles: 0, ..shared });
            kept.handles += handles;
            kept.holders.extend(holders);
            kept.waits.extend(waits);
        }
    }
}
