//! What is remembered of the objects that a process has ended.

use std::collections::VecDeque;

use urscope_schema::{call::Nanos, handle::Handle};

use super::{
    records::Tombstone,
    table::{Slot, Table},
};

/// How many tombstones there is room for at first: a process that has got and opened something puts and closes it.
const FIRST: usize = 4;

/// The latest ended objects of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    all: Table<Handle, Entry, FIRST>,
    /// The slots of those that were added, the oldest first. The latest has the number `next`, and each the number after that of the
    /// one before.
    order: VecDeque<Slot>,
    next: u32,
    /// When the latest call of the process returned.
    now: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The number with which it was added last. Numbers begin anew after 2³², when nothing is left of those of before.
    number: u32,
    /// When the call returned that ended the object.
    over: Nanos,
    /// Its address is in use again.
    forgotten: bool,
    tombstone: Tombstone,
}

impl Tombstones {
    /// How many a process keeps. A second end after so many others is taken for the end of something unknown.
    pub(crate) const KEPT: usize = 8192;

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> Option<&Tombstone> {
        self.all.get(handle).filter(|entry| !entry.forgotten).map(|entry| &entry.tombstone)
    }

    pub(crate) fn add(&mut self, handle: Handle, tombstone: Tombstone) {
        self.add_in_place(handle, || tombstone);
    }

    /// The same for one that is made where it stays, which this gives.
    #[expect(clippy::inline_always, reason = "so that it is stored field by field")]
    #[inline(always)]
    pub(crate) fn add_in_place(&mut self, handle: Handle, tombstone: impl FnOnce() -> Tombstone) -> Slot {
        // Mostly it is the latest that was added, and stays that.
        if let Some(slot) = self.all.find(handle)
            && let Some(latest) = self.all.at_mut(slot)
            && latest.number == self.next
        {
            *latest = Entry { number: self.next, over: self.now, forgotten: false, tombstone: tombstone() };
            return slot;
        }
        self.add_behind(handle, tombstone())
    }

    /// The same where the latest that was added lies, of the same handle.
    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    pub(super) fn renew(&mut self, slot: Slot, tombstone: impl FnOnce() -> Tombstone) {
        if let Some(latest) = self.all.at_mut(slot) {
            *latest = Entry { number: self.next, over: self.now, forgotten: false, tombstone: tombstone() };
        }
    }

    /// Adds one behind all others.
    #[inline(never)]
    fn add_behind(&mut self, handle: Handle, tombstone: Tombstone) -> Slot {
        let entry = Entry { number: self.next.wrapping_add(1), over: self.now, forgotten: false, tombstone };
        let slot = match self.all.find(handle).and_then(|slot| Some((slot, self.all.at_mut(slot)?))) {
            Some((slot, known)) => {
                *known = entry;
                slot
            }
            None => self.all.add(handle, entry),
        };
        self.next = self.next.wrapping_add(1);
        if self.order.len() == self.order.capacity() {
            self.order.reserve_exact(self.order.len().max(FIRST));
        }
        self.order.push_back(slot);
        let number = self.first();
        if self.order.len() > Self::KEPT
            && let Some(old) = self.order.pop_front()
            && self.all.at(old).is_some_and(|(_, kept)| kept.number == number)
        {
            self.all.clear(old);
        }
        slot
    }

    /// The number of the oldest.
    fn first(&self) -> u32 {
        self.next.wrapping_add(1).wrapping_sub(self.order.len() as u32)
    }

    /// A call of the process has returned: what is added from now on was over then.
    #[inline]
    pub(crate) fn returned(&mut self, at: Nanos) {
        self.now = at;
    }

    /// Those of what was over at that time.
    pub(crate) fn until(&self, time: Nanos) -> Self {
        let mut those = Self::default();
        for (number, slot) in (0..).map(|behind| self.first().wrapping_add(behind)).zip(&self.order) {
            let entry = self.all.at(*slot).filter(|(_, entry)| entry.number == number && !entry.forgotten);
            if let Some((handle, entry)) = entry.filter(|(_, entry)| entry.over <= time) {
                those.now = entry.over;
                those.add(handle, entry.tombstone);
            }
        }
        those
    }

    /// The address is in use again: what it was before does not matter any more. It is likely to be ended again, so its place is kept.
    #[inline]
    pub(crate) fn forget(&mut self, handle: Handle) {
        if let Some(entry) = self.all.get_mut(handle) {
            entry.forgotten = true;
        }
    }

    /// The same of the one that lies there.
    #[inline]
    pub(super) fn forget_at(&mut self, slot: Slot) {
        if let Some(entry) = self.all.at_mut(slot) {
            entry.forgotten = true;
        }
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.all.iter().filter(|(_, entry)| !entry.forgotten).map(|(handle, _)| handle)
    }
}
