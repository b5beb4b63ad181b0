//! The open lifetimes of one process, by the tracker's numbers.

use foldhash::HashMap;
use urscope_rules::tracker::records::Serial;

use super::Lifetime;

/// The lifetimes of a process that have not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenLifetimes {
    all: HashMap<Serial, Lifetime>,
    /// Those of further gets that returned the same handle data.
    again: HashMap<Serial, Vec<Lifetime>>,
    /// The handle data of each allocation, which ends with the allocation.
    of_memory: HashMap<Serial, Vec<Serial>>,
}

impl OpenLifetimes {
    /// Adds a lifetime. `of` is the memory that handle data exports.
    pub(super) fn put(&mut self, life: Lifetime, serial: Serial, of: Option<Serial>) {
        if let Some(before) = self.all.insert(serial, life) {
            return self.again.entry(serial).or_default().push(before);
        }
        if let Some(of) = of {
            let handles = self.of_memory.entry(of).or_default();
            // Most handle data of long-lived memory has been put already.
            if handles.len() == handles.capacity() {
                handles.retain(|serial| self.all.contains_key(serial));
            }
            handles.push(serial);
        }
    }

    /// Removes a lifetime, of several the latest.
    pub(super) fn take(&mut self, serial: Serial) -> Option<Lifetime> {
        let before = self.again.get_mut(&serial).and_then(Vec::pop);
        match before {
            Some(before) => self.all.insert(serial, before),
            None => self.all.remove(&serial),
        }
    }

    /// Removes the handle data of an allocation, the oldest first.
    pub(super) fn take_of(&mut self, memory: Serial) -> Vec<Lifetime> {
        let handles = self.of_memory.remove(&memory).unwrap_or_default();
        let with_serial = |serial| {
            let first = self.again.remove(&serial).unwrap_or_default();
            first.into_iter().chain(self.all.remove(&serial))
        };
        handles.into_iter().flat_map(with_serial).collect()
    }

    /// Removes all lifetimes, the oldest first.
    pub(super) fn take_everything(&mut self) -> Vec<Lifetime> {
        self.of_memory.clear();
        let again = self.again.drain().flat_map(|(_, lifetimes)| lifetimes);
        let mut lifetimes: Vec<_> = self.all.drain().map(|(_, life)| life).chain(again).collect();
        lifetimes.sort_unstable_by_key(|life| life.id);
        lifetimes
    }
}
