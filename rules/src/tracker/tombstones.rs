//! The objects that a process has ended, as far as they are remembered.

use std::collections::VecDeque;

use urscope_schema::call::Nanos;
use urscope_schema::handle::{Handle, Kind};

use super::records::{Counted, Tombstone};
use super::{observations::DanglingUse, small_maps::SmallMap};

/// The latest ended objects of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    all: SmallMap<Handle, Entry>,
    /// The handles in the order in which they were added, each with the number of its entry. An entry may
    /// have been removed, or have another number now.
    order: VecDeque<(Handle, u64)>,
    /// The number of the latest entry.
    latest: u64,
    /// When the latest call of the process returned.
    now: Nanos,
    /// The opens and closes of the latest mappings that were opened more than once.
    counted: VecDeque<(Handle, Box<Counted>)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    /// When the call returned that ended the object.
    over: Nanos,
    tombstone: Tombstone,
}

impl Tombstone {
    /// A use of what has ended, at an address in it.
    pub(super) const fn used_at(&self, pointer: u64, was: Handle) -> DanglingUse {
        DanglingUse { pointer, was, died: self.died, size: self.size, fingerprint: self.fingerprint }
    }
}

impl Tombstones {
    /// How many a process keeps. A second end after so many others counts as the end of an unknown object.
    pub(crate) const LIMIT: usize = 8192;

    /// Of how many mappings the opens and closes are kept.
    const COUNTED_LIMIT: usize = 64;

    pub(crate) fn get(&self, handle: Handle) -> Option<&Tombstone> {
        self.all.get(&handle).map(|entry| &entry.tombstone)
    }

    /// The mapping that ended last of those that an address was in. Without its size, only the first address of a
    /// mapping is known.
    pub(crate) fn mapping_around(&self, pointer: u64) -> Option<DanglingUse> {
        let mappings = self.all.iter().filter(|(handle, _)| handle.kind == Kind::Mapping && handle.value <= pointer);
        let around = mappings
            .map(|(handle, entry)| (*handle, &entry.tombstone))
            .filter(|(handle, tombstone)| pointer - handle.value < tombstone.size.unwrap_or(1));
        DanglingUse::latest(around.map(|(handle, tombstone)| tombstone.used_at(pointer, handle)))
    }

    pub(crate) fn add(&mut self, handle: Handle, tombstone: Tombstone) {
        self.latest += 1;
        self.all.insert(handle, Entry { number: self.latest, over: self.now, tombstone });
        self.order.push_back((handle, self.latest));
        while self.all.len() > Self::LIMIT
            && let Some((oldest, number)) = self.order.pop_front()
        {
            if self.all.get(&oldest).is_some_and(|entry| entry.number == number) {
                self.all.remove(&oldest);
            }
        }
        if self.order.len() > 2 * Self::LIMIT {
            let Self { all, order, .. } = self;
            order.retain(|(handle, number)| all.get(handle).is_some_and(|entry| entry.number == *number));
        }
    }

    /// Keeps the opens and closes of a mapping that has ended, in place of those of an earlier one at its address.
    pub(super) fn keep_counted(&mut self, handle: Handle, counted: Option<Box<Counted>>) {
        self.counted.retain(|(known, _)| *known != handle);
        if let Some(counted) = counted {
            if self.counted.len() >= Self::COUNTED_LIMIT {
                self.counted.pop_front();
            }
            self.counted.push_back((handle, counted));
        }
    }

    /// The opens and closes of a mapping that has ended, if it was opened more than once.
    pub(crate) fn counted(&self, handle: Handle) -> Option<&Counted> {
        self.counted.iter().find(|(known, _)| *known == handle).map(|(_, counted)| &**counted)
    }

    /// A call of the process has returned: what is added from now on ended at that time.
    pub(crate) fn returned(&mut self, at: Nanos) {
        self.now = at;
    }

    /// The tombstones of objects that had ended at a time.
    pub(crate) fn until(&self, time: Nanos) -> Self {
        let mut those = self.clone();
        those.all.retain(|entry| entry.over <= time);
        those
    }

    /// Removes the tombstone of an address that is in use again.
    pub(crate) fn forget(&mut self, handle: Handle) {
        self.all.remove(&handle);
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.all.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, ProcessId};

    fn handle(value: u64) -> Handle {
        Handle { kind: Kind::MemHandle, value }
    }

    fn add(tombstones: &mut Tombstones, value: u64) {
        let time = Nanos(value);
        let at = Place { process: ProcessId(0), tid: 0, time, call: None, function: None, stack: None };
        tombstones.returned(time);
        tombstones.add(handle(value), Tombstone { born: at, died: at, size: None, fingerprint: None, excused: false });
    }

    #[test]
    fn the_latest_are_kept_however_often_one_address_is_used_again() {
        let mut tombstones = Tombstones::default();
        let limit = Tombstones::LIMIT as u64;
        add(&mut tombstones, 1);
        for _ in 0..5 * limit {
            add(&mut tombstones, 2);
            assert!(tombstones.get(handle(1)).is_some());
            tombstones.forget(handle(2));
        }
        assert!(tombstones.order.len() <= 2 * Tombstones::LIMIT + 1);
        (3..limit + 3).for_each(|value| add(&mut tombstones, value));
        assert!(tombstones.get(handle(1)).is_none() && tombstones.get(handle(3)).is_some());
        assert_eq!(tombstones.all.len(), Tombstones::LIMIT);
        let until = tombstones.until(Nanos(10));
        assert_eq!((until.get(handle(10)).is_some(), until.handles().count()), (true, 8));
    }
}
