//! The open lifetimes of one process, by the tracker's numbers.

use foldhash::HashMap;
use urscope_rules::tracker::records::Serial;

use super::Lifetime;

/// The lifetimes of a process that have not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenLifetimes {
    all: HashMap<Serial, Lifetime>,
    /// The handle data of each allocation, which ends with the allocation.
    of_memory: HashMap<Serial, Vec<Serial>>,
}

impl OpenLifetimes {
    /// Adds a lifetime. `of` is the memory that handle data exports.
    pub(super) fn put(&mut self, life: Lifetime, serial: Serial, of: Option<Serial>) {
        self.all.insert(serial, life);
        if let Some(of) = of {
            let handles = self.of_memory.entry(of).or_default();
            // Most handle data of long-lived memory has been put already.
            if handles.len() == handles.capacity() {
                handles.retain(|serial| self.all.contains_key(serial));
            }
            handles.push(serial);
        }
    }

    /// Removes a lifetime.
    pub(super) fn take(&mut self, serial: Serial) -> Option<Lifetime> {
        self.all.remove(&serial)
    }

    /// Removes the handle data of an allocation, the oldest first.
    pub(super) fn take_of(&mut self, memory: Serial) -> Vec<Lifetime> {
        let handles = self.of_memory.remove(&memory).unwrap_or_default();
        handles.into_iter().filter_map(|serial| self.all.remove(&serial)).collect()
    }

    /// Removes all lifetimes, the oldest first.
    pub(super) fn take_everything(&mut self) -> Vec<Lifetime> {
        self.of_memory.clear();
        let mut lifetimes: Vec<_> = self.all.drain().map(|(_, life)| life).collect();
        lifetimes.sort_unstable_by_key(|life| life.id);
        lifetimes
    }
}
