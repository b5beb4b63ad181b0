//! What is remembered of the objects that a process has ended.

use std::collections::VecDeque;

use urscope_schema::handle::Handle;

use super::{hash::Map, records::Tombstone};

/// The latest ended objects of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    all: Map<Handle, (u64, Tombstone)>,
    order: VecDeque<(u64, Handle)>,
    next: u64,
}

impl Tombstones {
    /// How many a process keeps. A second end after so many others is taken for the end of something unknown.
    pub(crate) const KEPT: usize = 8192;

    pub(crate) fn get(&self, handle: Handle) -> Option<&Tombstone> {
        self.all.get(&handle).map(|(_, tombstone)| tombstone)
    }

    pub(crate) fn add(&mut self, handle: Handle, tombstone: Tombstone) {
        self.next += 1;
        self.all.insert(handle, (self.next, tombstone));
        self.order.push_back((self.next, handle));
        while self.order.len() > Self::KEPT {
            if let Some((number, old)) = self.order.pop_front()
                && self.all.get(&old).is_some_and(|(kept, _)| *kept == number)
            {
                self.all.remove(&old);
            }
        }
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
