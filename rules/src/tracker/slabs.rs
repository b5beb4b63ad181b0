//! What handle data shows beside its memory: a driver exports whole allocations of its own, and an adapter serves small
//! memory from pools of these.

use urscope_schema::call::Values;

use super::{Tracker, process_state::ProcessState, records::Serial};
use crate::finding::Place;

/// Gets of memory that lies in one allocation of the driver with other memory that is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    /// The first of them.
    pub(crate) got: Place,
    /// The memory, and its size.
    pub(crate) memory: u64,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    /// How many bytes the driver exports.
    pub(crate) exported: u64,
    /// Other memory in them, and the call that made it.
    pub(crate) neighbour: u64,
    pub(crate) made: Place,
    /// How many such gets there were.
    pub(crate) count: u64,
}

/// A get has returned, of that life, with the allocation of the driver that it exports.
pub(super) fn expose(tracker: &mut Tracker, got: Place, of: Option<Serial>, answer: &Values) {
    let (Some(life), Some(base), Some(exported)) = (tracker.life_mut(got.process), answer.pointer, answer.size) else {
        return;
    };
    let ProcessState { allocations, exposed, .. } = life;
    let within = || allocations.range(base..base.saturating_add(exported));
    let alive = within().filter(|(_, memory)| memory.freed.is_none() && !memory.dying);
    let neighbour =
        alive.filter(|(_, memory)| Some(memory.serial) != of).find_map(|(at, memory)| Some((*at, memory.born?)));
    let own = within().find(|(_, memory)| Some(memory.serial) == of);
    if let (Some((neighbour, made)), Some((memory, known))) = (neighbour, own) {
        let (size, fingerprint, memory) = (known.size, answer.fingerprint, *memory);
        let first = Exposed { got, memory, size, fingerprint, exported, neighbour, made, count: 0 };
        exposed.get_or_insert(first).count += 1;
    }
}
