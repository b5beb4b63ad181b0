//! Who exported which bytes: how an open in one process finds the get in another.
//!
//! All gets of one object with equal bytes are one export: of memory, all those of one pointer of one allocation. An export
//! outlives the put of its handles and the freeing of its memory, because its bytes do; the number of those that are over
//! is bounded.
//!
//! Exports lie in slots, and a slot that becomes free is the first to be used again. Exports are forgotten in about the order in which
//! they were made, so their slots are passed through in order, which a processor's cache serves better than a hash table of that size.

use std::{collections::VecDeque, num::NonZero};

use smallvec::SmallVec;
use urscope_schema::handle::Kind;

use super::{
    ProcessId,
    hash::Slots,
    kept::{KeptNumber, KeptPlace},
    records::Serial,
    shelves::Shelves,
};
use crate::finding::Place;

/// The number of an export, never the same twice, with its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportId(NonZero<u64>);

impl ExportId {
    /// The bits of the slot.
    const SLOT: u32 = 28;

    fn new(number: u64, slot: u32) -> Self {
        Self(NonZero::<u64>::new(number << Self::SLOT | u64::from(slot)).unwrap_or(NonZero::<u64>::MIN))
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0.get() >> Self::SLOT
    }

    fn slot(self) -> u32 {
        (self.0.get() & ((1 << Self::SLOT) - 1)) as u32
    }
}

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The kind of its handle data.
    pub(crate) kind: Kind,
    /// What it is in its process: an address of memory, or an object.
    pub(crate) value: KeptNumber,
    /// The life that is exported: an allocation, physical memory or an event.
    pub(crate) serial: Option<Serial>,
    /// What can be seen through it.
    pub(crate) size: KeptNumber,
    /// The device that it is on, in its process.
    pub(crate) device: KeptNumber,
}

/// Memory or an event that can be opened elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    id: ExportId,
    key: (u64, u64),
    /// Of the latest export of its bytes: how many exports of these bytes have handles that are not put. A forked child may get the bytes
    /// of its parent.
    alive: Option<u64>,
    process: ProcessId,
    pub(crate) subject: Subject,
    /// The latest get, and the first one if that is another.
    got: KeptPlace,
    first_got: Option<Box<Place>>,
    /// How many of its handles are not put.
    pub(crate) handles: u64,
    /// How often it was got, how often of these all its handles had been put before, and how long its gets and puts took
    /// together, in nanoseconds: with those of the exports of the same memory that it follows.
    pub(crate) gets: u64,
    pub(crate) again: u64,
    pub(crate) spent: u64,
    /// The put after which none was left, the last time that was so.
    put: Option<KeptPlace>,
    /// The free of its memory.
    freed: Option<KeptPlace>,
    /// Whether anybody has tried to open it.
    pub(crate) tried: bool,
    /// Who has it open: a mapping of a process.
    pub(crate) holders: SmallVec<[(ProcessId, u64); 1]>,
    retired: u64,
}

impl Export {
    /// The process that exported it first.
    pub(crate) fn producer(&self) -> ProcessId {
        self.process
    }

    /// Whether a get by that process would be another one of it whose bytes have that key: it is their latest export, and of that
    /// allocation.
    #[inline]
    pub(crate) fn is_latest(&self, key: (u64, u64), of: (ProcessId, Kind, Option<Serial>)) -> bool {
        self.alive.is_some() && self.key == key && (self.process, self.subject.kind, self.subject.serial) == of
    }

    /// Another get of it has returned that took so many nanoseconds, where `alive` exports of its bytes had handles that were not put.
    /// Returns how often all its handle data had been put before a get, if that is so of this one.
    #[expect(clippy::inline_always, reason = "it is a part of both of its callers")]
    #[inline(always)]
    fn get_again(&mut self, alive: u64, got: KeptPlace, took: u64) -> Option<u64> {
        let again = self.handles == 0;
        self.alive = Some(alive + u64::from(again));
        self.again += u64::from(again);
        self.gets += 1;
        self.spent += took;
        if self.first_got.is_none() {
            self.keep_first();
        }
        self.got = got;
        self.handles += 1;
        self.retired = 0;
        again.then_some(self.again)
    }

    /// There is a second get.
    #[cold]
    #[inline(never)]
    fn keep_first(&mut self) {
        self.first_got = Some(Box::new(self.got.place()));
    }

    /// The first get.
    pub(crate) fn first_got(&self) -> Place {
        self.first_got.as_deref().copied().unwrap_or(self.got.place())
    }

    /// The latest get.
    #[inline]
    pub(crate) fn got(&self) -> Place {
        self.got.place()
    }

    /// The free of its memory.
    pub(crate) fn last_free(&self) -> Option<Place> {
        self.freed.map(KeptPlace::place)
    }

    /// Its host.
    pub(crate) fn host(&self) -> u64 {
        self.key.0
    }

    /// The fingerprint of its bytes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.key.1
    }

    /// Which life is exported: an allocation, physical memory or an event; by its address where it was not seen being made.
    pub(crate) fn life(&self) -> (ProcessId, Kind, Option<Serial>, Option<u64>) {
        let Subject { kind, serial, value, .. } = self.subject;
        (self.process, kind, serial, value.get().filter(|_| serial.is_none()))
    }
}

/// All exports of all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports {
    /// The exports by their slots.
    all: Shelves<Export>,
    /// The slots without an export. The last one is used first.
    free: Vec<u32>,
    /// The latest export of bytes on a host.
    latest: Slots,
    retired: VecDeque<(ExportId, u64)>,
    next: u64,
    has_forgotten: bool,
    sizes: Vec<DataSize>,
}

/// A size that gets have given of a kind of handle data, on a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSize {
    pub(crate) host: u64,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    /// The first get that gave it.
    pub(crate) got: Place,
}

/// How many sizes are remembered: one for each kind, adapter and process.
const SIZES: usize = 4096;

impl Exports {
    /// How many exports are kept whose handles are all put, or whose memory is freed. An open of older bytes than these
    /// is an open of unknown origin.
    pub(crate) const KEPT: usize = 65_536;

    /// From how many gets of an export on, each after all its handle data was put, that is often: the get with this number is not a
    /// [usual](super::usual) one.
    pub(crate) const OFTEN: u64 = 100;

    /// From how many handles on that are not put that is growth, and not a handle that was forgotten: the get that makes it so many of one
    /// allocation is not a usual one either.
    pub(crate) const MANY: u64 = 256;

    /// Whether bytes that were handed out may be unknown by now.
    pub(crate) fn have_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// The sizes that gets have given of a kind of handle data on a host.
    pub(crate) fn sizes(&self, host: u64, kind: Kind) -> impl Iterator<Item = &DataSize> {
        self.sizes.iter().filter(move |known| (known.host, known.kind) == (host, kind))
    }

    /// A get has given a size.
    pub(crate) fn note_size(&mut self, given: DataSize) {
        let same = |known: &DataSize| (known.size, known.got.process) == (given.size, given.got.process);
        if self.sizes.len() < SIZES && !self.sizes(given.host, given.kind).any(same) {
            self.sizes.push(given);
        }
    }

    /// A put of it took so long, in nanoseconds.
    #[expect(clippy::inline_always, reason = "one addition")]
    #[inline(always)]
    pub(crate) fn spend(&mut self, id: ExportId, nanos: u64) {
        if let Some(export) = self.get_mut(id) {
            export.spent += nanos;
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: ExportId) -> Option<&Export> {
        self.all.at(id.slot())?.as_ref().filter(|export| export.id == id)
    }

    #[inline]
    fn get_mut(&mut self, id: ExportId) -> Option<&mut Export> {
        self.all.at_mut(id.slot())?.as_mut().filter(|export| export.id == id)
    }

    /// The latest export of these bytes.
    #[inline]
    fn latest(&self, key: (u64, u64)) -> Option<&Export> {
        let in_slot = |slot: u32| self.all.at(slot)?.as_ref();
        in_slot(self.latest.find(key, |slot| in_slot(slot).is_some_and(|export| export.key == key))?)
    }

    /// How many exports of the bytes of an export have handles that are not put; `None` if the latest is forgotten.
    fn alive(&self, export: &Export) -> Option<u64> {
        export.alive.or_else(|| self.latest(export.key)?.alive)
    }

    /// The latest export of these bytes on this host.
    pub(crate) fn of_bytes(&self, host: u64, fingerprint: u64) -> Option<ExportId> {
        self.latest((host, fingerprint)).map(|latest| latest.id)
    }

    /// The put with which the bytes of an export were over, if no handle with equal bytes is left anywhere.
    pub(crate) fn over(&self, id: ExportId) -> Option<Place> {
        let export = self.get(id)?;
        export.put.filter(|_| self.alive(export) == Some(0)).map(KeptPlace::place)
    }

    /// The free of the memory of an export, if no handle with equal bytes is left that is of something else.
    pub(crate) fn freed(&self, id: ExportId) -> Option<Place> {
        let export = self.get(id)?;
        let own = u64::from(export.handles > 0);
        export.last_free().filter(|_| self.alive(export).is_some_and(|alive| alive <= own))
    }

    /// Its memory has been freed, by that call.
    pub(crate) fn free(&mut self, id: ExportId, freed: Place) {
        if let Some(export) = self.get_mut(id) {
            export.freed = Some(KeptPlace::of(freed));
        }
        self.retire(id);
    }

    /// A get has returned that took so many nanoseconds; `previous` is the latest export of the same allocation, if all its handle data
    /// had been put. Returns also how often all handle data of the export had been put before a get, if that is so of this one.
    pub(crate) fn export(
        &mut self,
        (host, fingerprint): (u64, u64),
        subject: Subject,
        (got, took): (Place, u64),
        previous: Option<ExportId>,
    ) -> (ExportId, Option<u64>) {
        let key = (host, fingerprint);
        let latest = self.latest(key).map(|latest| (latest.id, latest.alive.unwrap_or_default()));
        if let Some((id, alive)) = latest
            && let Some(export) = self.get_mut(id)
            && (export.process, export.subject.kind, export.subject.serial)
                == (got.process, subject.kind, subject.serial)
        {
            return (id, export.get_again(alive, KeptPlace::of(got), took));
        }
        // Where every get returns other bytes, as with our backend, one export follows another.
        let followed = previous.and_then(|id| self.get(id)).filter(|previous| previous.subject == subject);
        let again = followed.map(|followed| followed.again + 1);
        let (gets, spent) = followed.map_or((1, took), |followed| (followed.gets + 1, followed.spent + took));
        let slot = self.free.pop().unwrap_or_else(|| self.all.add());
        let id = ExportId::new(self.stamp(), slot);
        let alive = match latest {
            None => {
                self.latest.insert(key, slot);
                0
            }
            Some((before, alive)) => {
                if let Some(export) = self.get_mut(before) {
                    export.alive = None;
                }
                self.latest.replace(key, before.slot(), slot);
                alive
            }
        };
        if let Some(place) = self.all.at_mut(slot) {
            *place = Some(Export {
                id,
                key,
                alive: Some(alive + 1),
                process: got.process,
                subject,
                got: KeptPlace::of(got),
                first_got: None,
                handles: 1,
                gets,
                again: again.unwrap_or_default(),
                spent,
                put: None,
                freed: None,
                tried: false,
                holders: SmallVec::new(),
                retired: 0,
            });
        }
        (id, again)
    }

    /// Another get of the [latest](Export::is_latest) export of its bytes has returned that took so many nanoseconds.
    #[expect(clippy::inline_always, reason = "it has one caller, of a usual get")]
    #[inline(always)]
    pub(crate) fn get_again(&mut self, id: ExportId, got: KeptPlace, took: u64) {
        if let Some(export) = self.get_mut(id)
            && let Some(alive) = export.alive
        {
            export.get_again(alive, got, took);
        }
    }

    /// The same of one all of whose handles are put, unless that is [often](Self::OFTEN): then nothing has changed, and this is false.
    #[inline]
    pub(super) fn get_again_unless_often(&mut self, id: ExportId, got: KeptPlace, took: u64) -> bool {
        let Some(export) = self.get_mut(id) else { return false };
        let Some(alive) = export.alive.filter(|_| export.again + 1 != Self::OFTEN) else { return false };
        export.get_again(alive, got, took);
        true
    }

    /// One of its handles is over: by the put that has begun at `put`, or by the end of its context.
    #[inline]
    pub(crate) fn put(&mut self, id: ExportId, put: Option<Place>) {
        let Some(export) = self.get_mut(id).filter(|export| export.handles > 0) else { return };
        export.handles -= 1;
        if export.handles == 0 {
            export.put = put.map(KeptPlace::of);
            match &mut export.alive {
                Some(alive) => *alive = alive.saturating_sub(1),
                None => self.change_alive(id, |alive| alive.saturating_sub(1)),
            }
            self.retire(id);
        }
    }

    /// That put was refused.
    pub(crate) fn put_refused(&mut self, id: ExportId) {
        let Some(export) = self.get_mut(id) else { return };
        export.handles += 1;
        export.retired = 0;
        if export.handles == 1 {
            self.change_alive(id, |alive| alive + 1);
        }
    }

    /// Changes how many exports of the bytes of an export have handles that are not put.
    fn change_alive(&mut self, id: ExportId, change: impl FnOnce(u64) -> u64) {
        let Some(export) = self.get_mut(id) else { return };
        if let Some(alive) = &mut export.alive {
            *alive = change(*alive);
            return;
        }
        let key = export.key;
        if let Some(latest) = self.latest(key).map(|latest| latest.id)
            && let Some(alive) = self.get_mut(latest).and_then(|latest| latest.alive.as_mut())
        {
            *alive = change(*alive);
        }
    }

    /// A process tries to open it. Returns the process that exported it.
    pub(crate) fn attempt(&mut self, id: ExportId) -> Option<ProcessId> {
        let export = self.get_mut(id)?;
        export.tried = true;
        Some(export.process)
    }

    /// All that are not forgotten, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Export> {
        self.all.iter()
    }

    /// A process has it open as the mapping at `pointer`.
    pub(crate) fn hold(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.get_mut(id)
            && !export.holders.contains(&(process, pointer))
        {
            export.holders.push((process, pointer));
        }
    }

    /// It has no longer.
    pub(crate) fn release(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.get_mut(id) {
            export.holders.retain(|holder| *holder != (process, pointer));
        }
    }

    /// The only one of its handles that is not put is over, by the put that has begun at `put`. It is the latest export of its bytes.
    #[inline]
    pub(super) fn put_only(&mut self, id: ExportId, put: KeptPlace) {
        let stamp = self.stamp();
        let Some(export) = self.get_mut(id) else { return };
        export.handles = 0;
        export.put = Some(put);
        export.alive = export.alive.map(|alive| alive.saturating_sub(1));
        export.retired = stamp;
        self.retire_last(id, stamp);
    }

    /// Nothing more will be got or put of it: it is kept as long as there is room.
    pub(crate) fn retire(&mut self, id: ExportId) {
        let stamp = self.stamp();
        if let Some(export) = self.get_mut(id) {
            export.retired = stamp;
            self.retire_last(id, stamp);
        }
    }

    /// Puts one behind all others of which nothing more will be got or put.
    #[inline]
    fn retire_last(&mut self, id: ExportId, stamp: u64) {
        // What it left here before is over: nothing is between the two.
        match self.retired.back_mut() {
            Some(latest) if latest.0 == id => latest.1 = stamp,
            _ => self.retired.push_back((id, stamp)),
        }
        while self.retired.len() > Self::KEPT && self.forget_first() {}
    }

    /// Forgets the one that has waited longest, unless it is still open somewhere, so that its free would be a violation: then it waits
    /// again, and this is false.
    #[cold]
    #[inline(never)]
    fn forget_first(&mut self) -> bool {
        let Some((old, stamp)) = self.retired.pop_front() else { return false };
        let Some(export) = self.get(old).filter(|export| export.retired == stamp) else { return true };
        let is_open = !export.holders.is_empty();
        if is_open {
            self.retired.push_back((old, stamp));
        } else {
            self.forget(old);
        }
        !is_open
    }

    /// A number that is higher than all before.
    #[inline]
    fn stamp(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn forget(&mut self, id: ExportId) {
        let Some(export) = self.get(id) else { return };
        let key = export.key;
        if export.alive.is_some() {
            self.latest.remove(key, id.slot());
        } else if export.handles > 0 {
            self.change_alive(id, |alive| alive.saturating_sub(1));
        }
        if let Some(place) = self.all.at_mut(id.slot()) {
            *place = None;
            self.free.push(id.slot());
        }
        self.has_forgotten = true;
    }
}
