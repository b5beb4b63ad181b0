//! Counts of live handle data and openings, updated at each birth and death.

use std::collections::HashMap;

use urscope_schema::handle::Kind;

use super::{Lifetime, LifetimeKind};

/// The kinds of handle data, in the order in which they are counted.
pub const HANDLES: [Kind; 4] = [Kind::MemHandle, Kind::PhysicalMemHandle, Kind::EventHandle, Kind::EventPoolHandle];

/// The kinds of openings, in the order in which they are counted.
pub const OPENINGS: [Kind; 4] = [Kind::Mapping, Kind::PhysicalMem, Kind::Event, Kind::EventPool];

/// The live handle data and openings of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of live handle data of each kind in [`HANDLES`].
    pub handles: [u64; HANDLES.len()],
    /// The number of live openings of each kind in [`OPENINGS`].
    pub openings: [u64; OPENINGS.len()],
    /// The bytes of memory with live handle data; each export counts once.
    pub exported_bytes: u64,
    /// The bytes of the live openings; each opening counts.
    pub mapped_bytes: u64,
}

impl Counts {
    /// The live count of a kind; 0 for a kind that is not counted.
    pub fn of(&self, kind: Kind) -> u64 {
        self.by_kind().find(|(known, _)| *known == kind).map_or(0, |(_, count)| count)
    }

    /// The live count of each kind: first handle data, then openings.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, u64)> {
        let handles = HANDLES.into_iter().zip(self.handles);
        handles.chain(OPENINGS.into_iter().zip(self.openings))
    }

    /// The number of live handle data of all kinds.
    pub fn all_handles(&self) -> u64 {
        self.handles.iter().sum()
    }

    /// The number of live openings of all kinds.
    pub fn all_openings(&self) -> u64 {
        self.openings.iter().sum()
    }

    fn slot(&mut self, kind: Kind) -> Option<&mut u64> {
        let handles = HANDLES.iter().zip(&mut self.handles);
        handles.chain(OPENINGS.iter().zip(&mut self.openings)).find(|(known, _)| **known == kind).map(|(_, slot)| slot)
    }
}

/// The bytes of exports that are held; each export counts once.
#[derive(Clone, Debug, Default)]
pub struct PinnedBytes {
    held: HashMap<u64, u64>,
    bytes: u64,
}

impl PinnedBytes {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A lifetime begins, which holds its export.
    pub fn born(&mut self, life: &Lifetime) {
        let Some(export) = life.export else { return };
        let held = self.held.entry(export).or_default();
        *held += 1;
        if *held == 1 {
            self.bytes += life.bytes.unwrap_or_default();
        }
    }

    /// A lifetime ends, which held its export.
    pub fn died(&mut self, life: &Lifetime) {
        let Some((export, held)) = life.export.and_then(|export| Some((export, self.held.get_mut(&export)?))) else {
            return;
        };
        *held -= 1;
        if *held == 0 {
            self.held.remove(&export);
            self.bytes -= life.bytes.unwrap_or_default();
        }
    }
}

/// Counts the live lifetimes of one process or of several.
#[derive(Clone, Debug, Default)]
pub struct LiveCounts {
    counts: Counts,
    exported: PinnedBytes,
}

impl LiveCounts {
    /// The current counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// A lifetime begins.
    pub fn born(&mut self, life: &Lifetime) {
        self.counts.slot(life.kind).into_iter().for_each(|slot| *slot += 1);
        match life.lane {
            LifetimeKind::Handle => self.exported.born(life),
            LifetimeKind::Opening => self.counts.mapped_bytes += life.bytes.unwrap_or_default(),
        }
        self.counts.exported_bytes = self.exported.bytes();
    }

    /// A lifetime ends.
    pub fn died(&mut self, life: &Lifetime) {
        self.counts.slot(life.kind).into_iter().for_each(|slot| *slot -= 1);
        match life.lane {
            LifetimeKind::Handle => self.exported.died(life),
            LifetimeKind::Opening => self.counts.mapped_bytes -= life.bytes.unwrap_or_default(),
        }
        self.counts.exported_bytes = self.exported.bytes();
    }
}
