//! Counts of live handle data and openings, updated at each birth and death.

use std::collections::HashMap;

use urscope_schema::handle::Kind;

use super::{Lifetime, LifetimeKind};

/// The kinds that are counted: first handle data, then openings.
const KINDS: [Kind; 8] = [
    Kind::MemHandle,
    Kind::PhysicalMemHandle,
    Kind::EventHandle,
    Kind::EventPoolHandle,
    Kind::Mapping,
    Kind::PhysicalMem,
    Kind::Event,
    Kind::EventPool,
];

/// The live handle data and openings of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The live number of each kind in `KINDS`.
    alive: [u64; KINDS.len()],
    /// The bytes of memory with live handle data; each export counts once.
    pub exported_bytes: u64,
    /// The bytes of the live openings; each opening counts.
    pub mapped_bytes: u64,
}

impl Counts {
    /// The live count of each kind: first handle data, then openings.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, u64)> {
        KINDS.into_iter().zip(self.alive)
    }

    fn slot(&mut self, kind: Kind) -> Option<&mut u64> {
        KINDS.iter().zip(&mut self.alive).find(|(known, _)| **known == kind).map(|(_, slot)| slot)
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
        if let Some(export) = life.export
            && let Some(held) = self.held.get_mut(&export)
        {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&export);
                self.bytes -= life.bytes.unwrap_or_default();
            }
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
