//! What is remembered of the objects that a process has ended.

use std::collections::VecDeque;

use urscope_schema::{call::Nanos, handle::Handle};

use super::{hash::Map, records::Tombstone};

/// The latest ended objects of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    all: Map<Handle, Entry>,
    order: VecDeque<(u64, Handle)>,
    next: u64,
    /// When the latest call of the process returned.
    now: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    /// When the call returned that ended the object.
    over: Nanos,
    tombstone: Tombstone,
}

impl Tombstones {
    /// How many a process keeps. A second end after so many others is taken for the end of something unknown.
    pub(crate) const KEPT: usize = 8192;

    pub(crate) fn get(&self, handle: Handle) -> Option<&Tombstone> {
        self.all.get(&handle).map(|entry| &entry.tombstone)
    }

    pub(crate) fn add(&mut self, handle: Handle, tombstone: Tombstone) {
        self.next += 1;
        self.all.insert(handle, Entry { number: self.next, over: self.now, tombstone });
        self.order.push_back((self.next, handle));
        while self.order.len() > Self::KEPT {
            if let Some((number, old)) = self.order.pop_front()
                && self.all.get(&old).is_some_and(|kept| kept.number == number)
            {
                self.all.remove(&old);
            }
        }
    }

    /// A call of the process has returned: what is added from now on was over then.
    pub(crate) fn returned(&mut self, at: Nanos) {
        self.now = at;
    }

    /// Those of what was over at that time.
    pub(crate) fn until(&self, time: Nanos) -> Self {
        let over = |handle: Handle| self.all.get(&handle).filter(|entry| entry.over <= time);
        let mut those = Self::default();
        for (number, handle) in &self.order {
            if let Some(entry) = over(*handle).filter(|entry| entry.number == *number) {
                those.now = entry.over;
                those.add(*handle, entry.tombstone);
            }
        }
        those
    }

    /// The address is in use again: what it was before does not matter any more.
    pub(crate) fn forget(&mut self, handle: Handle) {
        if !self.all.is_empty() {
            self.all.remove(&handle);
        }
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.all.keys().copied()
    }
}
