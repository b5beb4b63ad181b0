//! The size of a trace from which on not all commands are recorded, because a program may run for days.
//!
//! From there on a command is recorded if it uses memory that has ended, if it is put into a list that is executed
//! later, and once for each place in the program after each change of memory. What orders commands is not recorded any
//! more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use urscope_schema::{api::Function, call::SyncKind};

use crate::layer::trace;
use crate::{chain, knobs};

/// Whether the trace says so.
static IS_REACHED: AtomicBool = AtomicBool::new(false);

/// How often memory was made, opened, closed or freed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The places from which a command was recorded: a hash of each, with the number of changes by then in its lowest bits.
static PLACES: [[AtomicU64; 4]; 1024] = [const { [const { AtomicU64::new(0) }; 4] }; 1024];

/// The bits of [`PLACES`] that count changes.
const COUNT: u64 = 0xffff;

/// Whether the trace has reached its limit.
#[inline]
pub(crate) fn is_reached() -> bool {
    IS_REACHED.load(Ordering::Relaxed) || trace::size() >= knobs::read().trace_limit.bytes() && reach()
}

#[cold]
fn reach() -> bool {
    if !IS_REACHED.swap(true, Ordering::Relaxed) {
        chain::synchronization(SyncKind::Limit, None, None);
    }
    true
}

/// Memory is about to end, or is new.
#[inline]
pub(crate) fn note_change() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// Whether no command of this function was recorded from this call stack since the latest change of memory.
pub(crate) fn is_first(stack: u64, function: Function) -> bool {
    let hash = (stack ^ (function as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = hash & !COUNT | CHANGES.load(Ordering::Relaxed) & COUNT;
    let Some(places) = PLACES.get((hash >> 54) as usize) else { return true };
    for known in places {
        let it = known.load(Ordering::Relaxed);
        if it == place {
            return false;
        }
        if it == 0 || it & COUNT != place & COUNT {
            known.store(place, Ordering::Relaxed);
            return true;
        }
    }
    // So many places at once are not told apart.
    false
}

/// A forked child has a trace of its own, without the places of its parent.
pub(crate) fn after_fork_in_child() {
    note_change();
    IS_REACHED.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_first_once_after_each_change() {
        let copy = Function::urEnqueueUSMMemcpy;
        let fill = Function::urEnqueueUSMFill;
        for _ in 0..3 {
            assert!(is_first(7, copy) && is_first(8, copy) && is_first(7, fill));
            assert!(!is_first(7, copy) && !is_first(8, copy) && !is_first(7, fill));
            note_change();
        }
        let recorded = (0..1 << 20).filter(|stack| is_first(*stack, copy)).count();
        assert!((1000..=PLACES.as_flattened().len()).contains(&recorded), "{recorded}");
    }
}
