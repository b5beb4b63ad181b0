//! What lives in one process, found again by its address and, for handle data, by its export.

use std::collections::HashMap;

use urscope_schema::handle::Handle;

use super::{Lifetime, LifetimeKind};

/// The lives of a process.
#[derive(Debug, Default)]
pub(super) struct OpenLifetimes {
    handles: HashMap<Handle, Lifetime>,
    /// An address may be open several times.
    openings: HashMap<Handle, Vec<Lifetime>>,
    /// The handle data of each export.
    of_export: HashMap<u64, Vec<Handle>>,
}

fn handle(life: &Lifetime) -> Handle {
    Handle { kind: life.kind, value: life.address }
}

impl OpenLifetimes {
    /// Something lives, or does so still. Handle data at its address, which nobody put, is taken out.
    pub(super) fn put(&mut self, life: Lifetime) -> Option<Lifetime> {
        let handle = handle(&life);
        if life.lane == LifetimeKind::Opening {
            self.openings.entry(handle).or_default().push(life);
            return None;
        }
        let replaced = self.take(LifetimeKind::Handle, handle, life.at);
        self.handles.insert(handle, life);
        life.export.into_iter().for_each(|export| self.of_export.entry(export).or_default().push(handle));
        replaced
    }

    /// Takes out what lives at an address: of several openings the latest that was there at a moment.
    pub(super) fn take(&mut self, lane: LifetimeKind, handle: Handle, at: u64) -> Option<Lifetime> {
        if lane == LifetimeKind::Opening {
            let lives = self.openings.get_mut(&handle)?;
            let there = lives.iter().rposition(|life| life.at <= at);
            let life = there.or(lives.len().checked_sub(1)).map(|place| lives.remove(place));
            if lives.is_empty() {
                self.openings.remove(&handle);
            }
            return life;
        }
        let life = self.handles.remove(&handle)?;
        if let Some(export) = life.export
            && let Some(handles) = self.of_export.get_mut(&export)
        {
            handles.retain(|known| *known != handle);
            if handles.is_empty() {
                self.of_export.remove(&export);
            }
        }
        Some(life)
    }

    /// Takes out all handle data of an export, the oldest first.
    pub(super) fn take_all(&mut self, export: u64) -> Vec<Lifetime> {
        let handles = self.of_export.remove(&export).unwrap_or_default();
        in_order(handles.into_iter().filter_map(|handle| self.handles.remove(&handle)).collect())
    }

    /// Takes out everything, the oldest first.
    pub(super) fn take_everything(&mut self) -> Vec<Lifetime> {
        self.of_export.clear();
        let handles = self.handles.drain().map(|(_, life)| life);
        in_order(handles.chain(self.openings.drain().flat_map(|(_, lives)| lives)).collect())
    }
}

fn in_order(mut lives: Vec<Lifetime>) -> Vec<Lifetime> {
    lives.sort_by_key(|life| life.id);
    lives
}
