//! The lifetimes of one process that have not ended, by the tracker's numbers.

use foldhash::HashMap;
use urscope_rules::tracker::records::Serial;

use super::Lifetime;

/// What is open in a process.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenLifetimes {
    all: HashMap<Serial, Lifetime>,
    /// The handle data of each allocation: it ends with that.
    of_memory: HashMap<Serial, Vec<Serial>>,
}

impl OpenLifetimes {
    /// Something begins to live; of handle data, `of` is the memory that it exports.
    pub(super) fn put(&mut self, life: Lifetime, serial: Serial, of: Option<Serial>) {
        self.all.insert(serial, life);
        if let Some(of) = of {
            let handles = self.of_memory.entry(of).or_default();
            // Most of what was got of memory that lives long has been put.
            if handles.len() == handles.capacity() {
                handles.retain(|serial| self.all.contains_key(serial));
            }
            handles.push(serial);
        }
    }

    /// Takes one out.
    pub(super) fn take(&mut self, serial: Serial) -> Option<Lifetime> {
        self.all.remove(&serial)
    }

    /// Takes out the handle data of an allocation, the oldest first.
    pub(super) fn take_of(&mut self, memory: Serial) -> Vec<Lifetime> {
        let handles = self.of_memory.remove(&memory).unwrap_or_default();
        handles.into_iter().filter_map(|serial| self.all.remove(&serial)).collect()
    }

    /// Takes out everything, the oldest first.
    pub(super) fn take_everything(&mut self) -> Vec<Lifetime> {
        self.of_memory.clear();
        let mut lives: Vec<_> = self.all.drain().map(|(_, life)| life).collect();
        lives.sort_unstable_by_key(|life| life.id);
        lives
    }
}
