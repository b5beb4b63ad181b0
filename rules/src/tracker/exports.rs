//! Exports: which process exported which bytes, so that an open in one process finds the get in another.
//!
//! All gets of one object with equal bytes are one export: of memory, all those of one pointer of one
//! allocation. An export outlives the put of its handles and the free of its memory, because its bytes
//! do. The number of such exports is bounded.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use slab::Slab;
use smallvec::SmallVec;
use urscope_schema::{call::Nanos, handle::Kind};

use super::maps::Map;
use super::records::{ExportId, Serial};
use crate::place::{Place, ProcessId};

/// The object of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The kind of its handle data.
    pub(crate) kind: Kind,
    /// Its value in its process: an address of memory, or the handle of an object.
    pub(crate) value: Option<u64>,
    /// The life that is exported: an allocation, physical memory or an event.
    pub(crate) serial: Option<Serial>,
    /// The size in bytes that an open maps.
    pub(crate) size: Option<u64>,
    /// The device that it is on, in its process.
    pub(crate) device: Option<u64>,
    /// The size of its handle data in bytes, and their checksum.
    pub(crate) data: Option<(u64, u64)>,
}

/// The host and the fingerprint of handle data.
type Bytes = (u64, u64);

/// An open whose adapter would have changed the bytes of its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwriting {
    /// Where it began.
    pub(crate) opened: Place,
    /// When it returned.
    pub(crate) returned: Nanos,
    /// The first byte that it would have changed.
    pub(crate) byte: u64,
    /// Whether its process has opened the same bytes again: it has them unchanged somewhere.
    pub(crate) again: bool,
}

/// Memory or an event that can be opened elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    id: ExportId,
    bytes: Bytes,
    /// The process that exported it first.
    pub(crate) producer: ProcessId,
    pub(crate) subject: Subject,
    pub(crate) latest_get: Place,
    /// How many gets of it have returned, and how many of its handles are not put.
    pub(crate) gets: u64,
    pub(crate) handles: u64,
    /// The latest put after which no handle was left.
    put: Option<Place>,
    /// The free of its memory.
    pub(crate) last_free: Option<Place>,
    /// The first open of each process whose adapter would have changed the bytes of its caller.
    pub(crate) overwritten: Vec<Overwriting>,
    /// Whether a process has tried to open it.
    pub(crate) tried: bool,
    /// The mappings of processes that have it open.
    pub(crate) holders: SmallVec<[(ProcessId, u64); 1]>,
    /// Of an event: the first open in each process.
    pub(crate) opened: Vec<Place>,
    /// The number of its latest entry in [`Exports::retired`]; 0 after another get.
    retired: u64,
}

impl Export {
    /// Its host.
    pub(crate) fn host(&self) -> u64 {
        self.bytes.0
    }

    /// The fingerprint of its bytes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.bytes.1
    }

    /// Which life is exported: an allocation, physical memory or an event; by its address if its creation
    /// was not recorded.
    pub(crate) fn life(&self) -> (ProcessId, Kind, Option<Serial>, Option<u64>) {
        let Subject { kind, serial, value, .. } = self.subject;
        (self.producer, kind, serial, value.filter(|_| serial.is_none()))
    }
}

/// The exports of equal bytes.
#[derive(Clone, Copy, Debug)]
struct SameBytes {
    latest: ExportId,
    /// How many of them have handles that are not put. A forked child may get the bytes of its parent.
    alive: u64,
}

/// All exports of all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports {
    all: Slab<Export>,
    by_bytes: Map<Bytes, SameBytes>,
    /// The exports that have no handles or no memory any more, in the order in which that happened, each
    /// with the number of its entry.
    retired: VecDeque<(ExportId, u64)>,
    /// The latest export that a get of a process has returned as a descriptor, by that process and its handle data. A
    /// process has only so many descriptors.
    by_descriptor: Map<(ProcessId, u64), ExportId>,
    /// How many numbers exports and entries of `retired` have.
    numbers: u64,
    pub(super) has_forgotten: bool,
}

impl Exports {
    /// The number of exports that are kept although their handles are all put or their memory is freed. An
    /// open of older bytes has an unknown origin.
    pub(crate) const LIMIT: usize = 65_536;

    pub(crate) fn get(&self, id: ExportId) -> Option<&Export> {
        self.all.get(id.place as usize).filter(|export| export.id == id)
    }

    fn get_mut(&mut self, id: ExportId) -> Option<&mut Export> {
        self.all.get_mut(id.place as usize).filter(|export| export.id == id)
    }

    /// The latest export of these bytes on this host.
    pub(crate) fn of_bytes(&self, host: u64, fingerprint: u64) -> Option<ExportId> {
        self.by_bytes.get(&(host, fingerprint)).map(|same| same.latest)
    }

    /// A get has returned it as a descriptor, which is the value of its handle data.
    pub(super) fn note_descriptor(&mut self, who: ProcessId, data: u64, id: ExportId) {
        self.by_descriptor.insert((who, data), id);
    }

    /// The latest export that a get of a process has returned as that descriptor.
    pub(super) fn of_descriptor(&self, who: ProcessId, data: u64) -> Option<&Export> {
        self.get(*self.by_descriptor.get(&(who, data))?)
    }

    /// All exports that are not forgotten, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Export> {
        self.all.iter().map(|(_, export)| export)
    }

    /// How many exports of the bytes of an export have handles that are not put; `None` if the latest is forgotten.
    fn alive(&self, export: &Export) -> Option<u64> {
        self.by_bytes.get(&export.bytes).map(|same| same.alive)
    }

    /// The put after which no handle with the bytes of an export was left anywhere; `None` if there still is one.
    pub(crate) fn over(&self, id: ExportId) -> Option<Place> {
        let export = self.get(id)?;
        export.put.filter(|_| self.alive(export) == Some(0))
    }

    /// The free of the memory of an export, if no handle of something else with equal bytes is left.
    pub(crate) fn freed(&self, id: ExportId) -> Option<Place> {
        let export = self.get(id)?;
        let own = u64::from(export.handles > 0);
        export.last_free.filter(|_| self.alive(export).is_some_and(|alive| alive <= own))
    }

    /// A get of these bytes on this host has returned.
    pub(crate) fn export(&mut self, host: u64, fingerprint: u64, mut subject: Subject, got: Place) -> ExportId {
        let bytes = (host, fingerprint);
        let before = self.of_bytes(host, fingerprint);
        if let Some(export) = before.and_then(|id| self.get_mut(id)) {
            // A thread records a checksum once, and a forked child may have it from its parent.
            subject.data = subject.data.or(export.subject.data);
            if (export.producer, export.subject.kind, export.subject.serial)
                == (got.process, subject.kind, subject.serial)
            {
                let id = export.id;
                let is_first_handle = export.handles == 0;
                export.gets += 1;
                export.latest_get = got;
                export.handles += 1;
                export.retired = 0;
                if is_first_handle {
                    self.change_alive(bytes, |alive| alive + 1);
                }
                return id;
            }
        }
        let id = ExportId { number: self.number(), place: self.all.vacant_key() as u32 };
        let same = self.by_bytes.entry(bytes).or_insert(SameBytes { latest: id, alive: 0 });
        same.latest = id;
        same.alive += 1;
        let new = Export {
            id,
            bytes,
            producer: got.process,
            subject,
            latest_get: got,
            gets: 1,
            handles: 1,
            put: None,
            last_free: None,
            overwritten: Vec::new(),
            tried: false,
            holders: SmallVec::new(),
            opened: Vec::new(),
            retired: 0,
        };
        self.all.insert(new);
        id
    }

    /// One of its handles ends: by the put that began at `put`, or with its context.
    pub(crate) fn put(&mut self, id: ExportId, put: Option<Place>) {
        let Some(export) = self.get_mut(id).filter(|export| export.handles > 0) else { return };
        export.handles -= 1;
        if export.handles == 0 {
            export.put = put;
            let bytes = export.bytes;
            self.change_alive(bytes, |alive| alive.saturating_sub(1));
            self.retire(id);
        }
    }

    /// That put was refused.
    pub(crate) fn put_refused(&mut self, id: ExportId) {
        let Some(export) = self.get_mut(id) else { return };
        export.handles += 1;
        export.retired = 0;
        if export.handles == 1 {
            let bytes = export.bytes;
            self.change_alive(bytes, |alive| alive + 1);
        }
    }

    fn change_alive(&mut self, bytes: Bytes, change: impl FnOnce(u64) -> u64) {
        if let Some(same) = self.by_bytes.get_mut(&bytes) {
            same.alive = change(same.alive);
        }
    }

    /// Its memory has been freed, by that call.
    pub(crate) fn free(&mut self, id: ExportId, freed: Place) {
        if let Some(export) = self.get_mut(id) {
            export.last_free = Some(freed);
        }
        self.retire(id);
    }

    /// An adapter would have changed its bytes in an open. The first one of each process is kept.
    pub(crate) fn overwrite(&mut self, id: ExportId, open: Overwriting) {
        if let Some(export) = self.get_mut(id)
            && export.overwritten.iter().all(|other| other.opened.process != open.opened.process)
        {
            export.overwritten.push(open);
        }
    }

    /// A process tries to open it.
    pub(crate) fn attempt(&mut self, id: ExportId, who: ProcessId) {
        if let Some(export) = self.get_mut(id) {
            export.tried = true;
            for open in &mut export.overwritten {
                open.again |= open.opened.process == who;
            }
        }
    }

    /// A process has opened it as the mapping at `pointer`.
    pub(crate) fn hold(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.get_mut(id)
            && !export.holders.contains(&(process, pointer))
        {
            export.holders.push((process, pointer));
        }
    }

    /// A process has opened it as an event.
    pub(crate) fn opened(&mut self, id: ExportId, opened: Place) {
        if let Some(export) = self.get_mut(id)
            && export.opened.iter().all(|other| other.process != opened.process)
        {
            export.opened.push(opened);
        }
    }

    /// A process has closed it.
    pub(crate) fn release(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.get_mut(id) {
            export.holders.retain(|holder| *holder != (process, pointer));
        }
    }

    /// It has no handles or no memory any more: it is kept until too many others are.
    pub(crate) fn retire(&mut self, id: ExportId) {
        let number = self.number().get();
        let Some(export) = self.get_mut(id) else { return };
        export.retired = number;
        match self.retired.back_mut() {
            Some(latest) if latest.0 == id => latest.1 = number,
            _ => self.retired.push_back((id, number)),
        }
        while self.retired.len() > Self::LIMIT && self.forget_oldest() {}
    }

    /// Forgets the export that was retired first. If it is still open somewhere, its free would be a
    /// violation: then it is retired again, and this is false.
    fn forget_oldest(&mut self) -> bool {
        let Some((oldest, number)) = self.retired.pop_front() else { return false };
        let Some(export) = self.get(oldest).filter(|export| export.retired == number) else { return true };
        let is_open = !export.holders.is_empty();
        if is_open {
            self.retired.push_back((oldest, number));
        } else {
            self.forget(oldest);
        }
        !is_open
    }

    fn forget(&mut self, id: ExportId) {
        let Some(gone) = self.get(id).is_some().then(|| self.all.remove(id.place as usize)) else { return };
        if self.by_bytes.get(&gone.bytes).is_some_and(|same| same.latest == id) {
            self.by_bytes.remove(&gone.bytes);
        } else if gone.handles > 0 {
            self.change_alive(gone.bytes, |alive| alive.saturating_sub(1));
        }
        self.has_forgotten = true;
    }

    /// The next number: higher than all before.
    fn number(&mut self) -> NonZeroU64 {
        self.numbers += 1;
        NonZeroU64::MIN.saturating_add(self.numbers - 1)
    }
}
