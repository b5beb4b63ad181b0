//! What the tracker keeps of each object while it lives, and what it remembers afterwards.

use std::collections::{BTreeSet, VecDeque};

use urscope_schema::handle::Handle;

use super::{exports::ExportId, hash::Map};
use crate::{finding::Place, lifecycle::State};

/// Tells the lives at one address apart: never the same twice.
pub(crate) type Serial = u64;

/// Handle data that was got and not put.
#[derive(Clone, Debug)]
pub(crate) struct HandleData {
    pub(crate) serial: Serial,
    pub(crate) state: State,
    pub(crate) born: Place,
    /// The exported memory or object; unknown where the enter of the get is missing.
    pub(crate) pointer: Option<u64>,
    /// The size of what can be seen through it.
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) export: Option<ExportId>,
    /// The life it exports: the handle data of memory must be put while that lives.
    pub(crate) exported: Option<Serial>,
    /// The context it was got in; of an event, the one that its object belongs to.
    pub(crate) context: Option<u64>,
    /// A finding has already been made of the way in which it was ended: its leak is the same violation.
    pub(crate) accused: bool,
}

/// Opened memory of another process.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) serial: Serial,
    pub(crate) state: State,
    /// The opens that are not closed yet, by context.
    pub(crate) opens: Vec<Opens>,
    /// How many closes of it have begun and not returned.
    pub(crate) closing: u64,
    /// How often this pointer was opened in all, and closed.
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) export: Option<ExportId>,
    /// The get that its data came from.
    pub(crate) source: Option<Place>,
    /// A finding has already been made of the way in which it was ended: its leak is the same violation.
    pub(crate) accused: bool,
}

/// The opens of one pointer in one context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opens {
    pub(crate) context: Option<u64>,
    pub(crate) count: u64,
    /// The last of them.
    pub(crate) place: Place,
}

impl Mapping {
    /// A mapping of which nothing is known yet.
    pub(crate) fn new(serial: Serial) -> Self {
        Self {
            serial,
            state: State::Unknown,
            opens: Vec::new(),
            closing: 0,
            opened: 0,
            closed: 0,
            size: None,
            fingerprint: None,
            export: None,
            source: None,
            accused: false,
        }
    }

    /// The last open that is not closed.
    pub(crate) fn last_open(&self) -> Option<Place> {
        self.opens.iter().map(|opens| opens.place).max_by_key(|place| (place.time, place.call))
    }

    /// Whether a close in `context` is a close of one of its opens; what is not known is believed.
    pub(crate) fn is_open_in(&self, context: Option<u64>) -> bool {
        context.is_none() || self.opens.iter().any(|opens| opens.context == context || opens.context.is_none())
    }

    /// Adds an open.
    pub(crate) fn add(&mut self, context: Option<u64>, place: Place) {
        match self.opens.iter_mut().find(|opens| opens.context == context) {
            Some(opens) => *opens = Opens { context, count: opens.count + 1, place },
            None => self.opens.push(Opens { context, count: 1, place }),
        }
    }

    /// Takes an open away, one of `context` if there is one; says which.
    pub(crate) fn take(&mut self, context: Option<u64>) -> Option<(Option<u64>, Place)> {
        let index = self.opens.iter().position(|opens| opens.context == context).or(self.opens.len().checked_sub(1))?;
        let opens = self.opens.get_mut(index)?;
        let taken = (opens.context, opens.place);
        opens.count -= 1;
        if opens.count == 0 {
            self.opens.remove(index);
        }
        Some(taken)
    }
}

/// Physical memory or an event that can be shared, or that a get of it is refused for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) serial: Serial,
    pub(crate) state: State,
    pub(crate) references: u64,
    pub(crate) born: Place,
    pub(crate) origin: Origin,
    pub(crate) context: Option<u64>,
    pub(crate) size: Option<u64>,
    /// How much handle data of it is not put.
    pub(crate) handles: u64,
    /// The last get of it.
    pub(crate) got: Option<Place>,
    /// The fingerprint of the handle data it was opened from, and the get that these came from.
    pub(crate) fingerprint: Option<u64>,
    pub(crate) source: Option<Place>,
    /// A finding has already been made of the way in which it was ended: its leak is the same violation.
    pub(crate) accused: bool,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Made here with the IPC flag.
    Shareable,
    /// Made here without it.
    Plain,
    /// Opened from another process's handle data.
    Imported,
}

/// USM, allocated or first met as an argument.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) serial: Serial,
    /// Absent for a stranger: then only its exact pointer is known.
    pub(crate) size: Option<u64>,
    /// The device that it was made for.
    pub(crate) device: Option<u64>,
    pub(crate) born: Option<Place>,
    pub(crate) dying: bool,
    /// The free that ended it: it is kept for a while, so that a later get of it is known for what it is.
    pub(crate) freed: Option<Place>,
    /// One per pointer into it that was exported.
    pub(crate) exports: BTreeSet<ExportId>,
}

/// A handle that was ended: what is remembered to tell a second end from the end of something unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tombstone {
    pub(crate) born: Place,
    pub(crate) died: Place,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    /// It was ended by something else than its own call, and that has been reported: a late end is no new violation.
    pub(crate) excused: bool,
}

/// The last tombstones of a process.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    tombstones: Map<Handle, (u64, Tombstone)>,
    order: VecDeque<(u64, Handle)>,
    next: u64,
}

impl Tombstones {
    /// How many tombstones a process keeps. A second end after so many others is taken for the end of something unknown.
    pub(crate) const KEPT: usize = 8192;

    pub(crate) fn get(&self, handle: Handle) -> Option<&Tombstone> {
        self.tombstones.get(&handle).map(|(_, tombstone)| tombstone)
    }

    pub(crate) fn bury(&mut self, handle: Handle, tombstone: Tombstone) {
        self.next += 1;
        self.tombstones.insert(handle, (self.next, tombstone));
        self.order.push_back((self.next, handle));
        while self.order.len() > Self::KEPT {
            if let Some((number, old)) = self.order.pop_front()
                && self.tombstones.get(&old).is_some_and(|(kept, _)| *kept == number)
            {
                self.tombstones.remove(&old);
            }
        }
    }

    /// The address lives again: its past is over.
    pub(crate) fn forget(&mut self, handle: Handle) {
        self.tombstones.remove(&handle);
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.tombstones.keys().copied()
    }
}
