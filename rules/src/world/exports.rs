//! Who exported which bytes: how an open in one process finds the get in another.
//!
//! All gets of one pointer of one allocation have equal bytes and are one export. An export outlives the put of its
//! handles and the freeing of its memory, because its bytes do; the number of those that are over is bounded.

use std::collections::VecDeque;

use super::{ProcessId, hash::Map, records::Serial};
use crate::finding::Place;

/// The number of an export, never the same twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExportId(u64);

/// Memory that can be opened elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    key: (u64, u64),
    process: ProcessId,
    allocation: Option<Serial>,
    /// What can be seen through it.
    pub(crate) size: Option<u64>,
    /// The latest get.
    pub(crate) got: Place,
    /// How many of its handles are not put.
    pub(crate) handles: u64,
    /// Who has it open: a mapping of a process.
    pub(crate) holders: Vec<(ProcessId, u64)>,
    retired: u64,
}

impl Export {
    /// The fingerprint of its bytes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.key.1
    }
}

/// All exports of all processes.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    all: Map<ExportId, Export>,
    latest: Map<(u64, u64), ExportId>,
    retired: VecDeque<(ExportId, u64)>,
    next: u64,
}

impl Exports {
    /// How many exports are kept whose handles are all put, or whose memory is freed. An open of older bytes than these
    /// is an open of unknown origin.
    pub(crate) const KEPT: usize = 65_536;

    pub(crate) fn get(&self, id: ExportId) -> Option<&Export> {
        self.all.get(&id)
    }

    /// The latest export of these bytes on this host.
    pub(crate) fn of_bytes(&self, host: u64, fingerprint: u64) -> Option<ExportId> {
        self.latest.get(&(host, fingerprint)).copied()
    }

    /// A get has returned.
    pub(crate) fn export(
        &mut self,
        (host, fingerprint): (u64, u64),
        allocation: Option<Serial>,
        size: Option<u64>,
        got: Place,
    ) -> ExportId {
        let key = (host, fingerprint);
        if let Some(id) = self.latest.get(&key)
            && let Some(export) = self.all.get_mut(id)
            && (export.process, export.allocation) == (got.process, allocation)
        {
            export.got = got;
            export.handles += 1;
            export.retired = 0;
            return *id;
        }
        self.next += 1;
        let id = ExportId(self.next);
        let (process, holders) = (got.process, Vec::new());
        self.all.insert(id, Export { key, process, allocation, size, got, handles: 1, holders, retired: 0 });
        self.latest.insert(key, id);
        id
    }

    /// A put of one of its handles has begun.
    pub(crate) fn put(&mut self, id: ExportId) {
        if let Some(export) = self.all.get_mut(&id) {
            export.handles = export.handles.saturating_sub(1);
            if export.handles == 0 {
                self.retire(id);
            }
        }
    }

    /// That put was refused.
    pub(crate) fn put_refused(&mut self, id: ExportId) {
        if let Some(export) = self.all.get_mut(&id) {
            export.handles += 1;
            export.retired = 0;
        }
    }

    /// A process has it open as the mapping at `pointer`.
    pub(crate) fn hold(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.all.get_mut(&id)
            && !export.holders.contains(&(process, pointer))
        {
            export.holders.push((process, pointer));
        }
    }

    /// It has no longer.
    pub(crate) fn release(&mut self, id: ExportId, process: ProcessId, pointer: u64) {
        if let Some(export) = self.all.get_mut(&id) {
            export.holders.retain(|holder| *holder != (process, pointer));
        }
    }

    /// Nothing more will be got or put of it: it is kept as long as there is room.
    pub(crate) fn retire(&mut self, id: ExportId) {
        self.next += 1;
        let stamp = self.next;
        if let Some(export) = self.all.get_mut(&id) {
            export.retired = stamp;
            self.retired.push_back((id, stamp));
        }
        while self.retired.len() > Self::KEPT {
            let Some((old, stamp)) = self.retired.pop_front() else { return };
            if let Some(export) = self.all.get(&old)
                && export.retired == stamp
            {
                if export.holders.is_empty() {
                    let key = export.key;
                    self.all.remove(&old);
                    if self.latest.get(&key) == Some(&old) {
                        self.latest.remove(&key);
                    }
                } else {
                    // Still open somewhere, so its freeing would be a sin: it waits again.
                    self.retired.push_back((old, stamp));
                    return;
                }
            }
        }
    }
}
