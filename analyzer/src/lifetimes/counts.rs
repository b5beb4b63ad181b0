//! How much lives in a process, kept up to date birth by birth.

use std::collections::HashMap;

use urscope_schema::handle::Kind;

use super::{Lifetime, LifetimeKind};

/// The kinds of handle data, in the order in which they are counted.
pub const HANDLES: [Kind; 3] = [Kind::MemHandle, Kind::PhysicalMemHandle, Kind::EventHandle];

/// The kinds of what is opened, in the order in which they are counted.
pub const OPENINGS: [Kind; 3] = [Kind::Mapping, Kind::PhysicalMem, Kind::Event];

/// How much lives in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handle data, by [`HANDLES`].
    pub handles: [u64; 3],
    /// Openings, by [`OPENINGS`].
    pub openings: [u64; 3],
    /// The bytes that handle data is out of, those of each export once.
    pub exported_bytes: u64,
    /// The bytes that are open, those of each opening.
    pub mapped_bytes: u64,
}

impl Counts {
    /// How many of a kind live.
    pub fn of(&self, kind: Kind) -> u64 {
        self.by_kind().find(|(known, _)| *known == kind).map_or(0, |(_, count)| count)
    }

    /// All kinds of handle data, then all kinds of openings.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, u64)> {
        let handles = HANDLES.into_iter().zip(self.handles);
        handles.chain(OPENINGS.into_iter().zip(self.openings))
    }

    /// How much handle data lives.
    pub fn all_handles(&self) -> u64 {
        self.handles.iter().sum()
    }

    /// How many openings live.
    pub fn all_openings(&self) -> u64 {
        self.openings.iter().sum()
    }

    fn slot(&mut self, kind: Kind) -> Option<&mut u64> {
        let handles = HANDLES.iter().zip(&mut self.handles);
        handles.chain(OPENINGS.iter().zip(&mut self.openings)).find(|(known, _)| **known == kind).map(|(_, slot)| slot)
    }
}

/// The bytes of exports, those of each once, however often they are held.
#[derive(Clone, Debug, Default)]
pub struct PinnedBytes {
    held: HashMap<u64, u64>,
    bytes: u64,
}

impl PinnedBytes {
    /// How many there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// One more life holds its export.
    pub fn born(&mut self, life: &Lifetime) {
        let Some(export) = life.export else { return };
        let held = self.held.entry(export).or_default();
        *held += 1;
        if *held == 1 {
            self.bytes += life.bytes.unwrap_or_default();
        }
    }

    /// It does so no longer.
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

/// Counts the lives of a process, or of several.
#[derive(Clone, Debug, Default)]
pub struct LiveCounts {
    counts: Counts,
    exported: PinnedBytes,
}

impl LiveCounts {
    /// How much lives.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// One more lives.
    pub fn born(&mut self, life: &Lifetime) {
        self.counts.slot(life.kind).into_iter().for_each(|slot| *slot += 1);
        match life.lane {
            LifetimeKind::Handle => self.exported.born(life),
            LifetimeKind::Opening => self.counts.mapped_bytes += life.bytes.unwrap_or_default(),
        }
        self.counts.exported_bytes = self.exported.bytes();
    }

    /// One that lived does not any longer.
    pub fn died(&mut self, life: &Lifetime) {
        self.counts.slot(life.kind).into_iter().for_each(|slot| *slot -= 1);
        match life.lane {
            LifetimeKind::Handle => self.exported.died(life),
            LifetimeKind::Opening => self.counts.mapped_bytes -= life.bytes.unwrap_or_default(),
        }
        self.counts.exported_bytes = self.exported.bytes();
    }
}
