//! A thread's cache of recent handle data and its fingerprints.
//!
//! Programs get the same handle data again and again. Each step of the hash depends on the one before, so the hash
//! takes about as long as the rest of recording a call; a comparison is faster.

use std::cell::{Cell, UnsafeCell};

use urscope_schema::handle::{checksum, fingerprint};

use super::thread;
use crate::raw::signals::sync::{Ordering, compiler_fence};

/// The number of entries. Data at different addresses most likely have different slots.
const SLOTS: usize = 4;

/// The sizes of cached data in bytes. Hashing shorter data takes no longer.
const MAX_SIZE: usize = 128;
const MIN_SIZE: usize = 64;

/// The cache. A signal handler may use it at any instruction.
#[derive(Default)]
pub(crate) struct RecentData([Slot; SLOTS]);

struct Slot {
    /// Increases by two with each change. Odd during a change.
    turn: Cell<u64>,
    size: Cell<usize>,
    bytes: UnsafeCell<[u8; MAX_SIZE]>,
    fingerprint: Cell<u64>,
}

impl Default for Slot {
    fn default() -> Self {
        let turn = Cell::new(0);
        let fingerprint = Cell::new(0);
        Self { turn, size: Cell::new(0), bytes: UnsafeCell::new([0; MAX_SIZE]), fingerprint }
    }
}

// SAFETY: one thread at a time uses it (`thread::recent_data`).
unsafe impl Sync for RecentData {}

/// The [fingerprint] of handle data, and its [checksum] unless the thread has had it lately.
#[inline]
pub(crate) fn hashes_of(data: &[u8]) -> (u64, Option<u64>) {
    let cached = if (MIN_SIZE..=MAX_SIZE).contains(&data.len()) { thread::recent_data() } else { None };
    let place = data.as_ptr().addr() / 16 % SLOTS;
    match cached.and_then(|cached| cached.0.get(place)) {
        Some(slot) => slot.hashes_of(data),
        None => (fingerprint(data), Some(checksum(data))),
    }
}

impl Slot {
    #[inline]
    fn hashes_of(&self, data: &[u8]) -> (u64, Option<u64>) {
        let turn = self.turn.get();
        compiler_fence(Ordering::SeqCst);
        // SAFETY: only this thread writes there. If a handler does so during the comparison, the turn differs.
        let bytes = unsafe { &*self.bytes.get() };
        let is_it = self.size.get() == data.len() && bytes.get(..data.len()) == Some(data);
        let cached = self.fingerprint.get();
        compiler_fence(Ordering::SeqCst);
        if is_it && turn.is_multiple_of(2) && self.turn.get() == turn {
            (cached, None)
        } else {
            (self.renew(data), Some(checksum(data)))
        }
    }

    #[inline(never)]
    fn renew(&self, data: &[u8]) -> u64 {
        let fingerprint = fingerprint(data);
        let turn = self.turn.get();
        // Not in a handler that has interrupted this.
        if turn.is_multiple_of(2) {
            self.turn.set(turn + 1);
            compiler_fence(Ordering::SeqCst);
            // SAFETY: as above; no handler writes there during a change.
            if let Some(slot) = unsafe { &mut *self.bytes.get() }.get_mut(..data.len()) {
                slot.copy_from_slice(data);
                self.size.set(data.len());
                self.fingerprint.set(fingerprint);
            }
            compiler_fence(Ordering::SeqCst);
            self.turn.set(turn + 2);
        }
        fingerprint
    }
}

#[cfg(test)]
mod tests {
    use urscope_schema::api::Function;

    use super::*;

    #[test]
    fn a_fingerprint_is_that_of_the_bytes_whatever_was_there_before() {
        thread::count_call(Function::urIPCGetMemHandleExp);
        assert!(thread::recent_data().is_some());
        let mut bytes = [7_u8; 256];
        for turn in 0..200_u8 {
            for size in [0, 1, 63, 64, 104, 108, 120, 128, 129, 256] {
                // Often the same data, sometimes with another byte, also the last one.
                if turn % 3 == 0 {
                    let at = usize::from(turn) * 7 % size.max(1);
                    bytes[at] ^= turn;
                    bytes[size.max(1) - 1] ^= 1;
                }
                assert_eq!(hashes_of(&bytes[..size]).0, fingerprint(&bytes[..size]), "{size} in turn {turn}");
                assert_eq!(hashes_of(&bytes[..size]).0, fingerprint(&bytes[..size]), "{size} in turn {turn}, again");
            }
        }
    }

    #[test]
    fn data_is_kept_whole_or_not_at_all_where_a_handler_comes_in_between() {
        let slot = Slot::default();
        let [one, other] = [[1_u8; 120], [2; 120]];
        assert_eq!(slot.hashes_of(&one).0, fingerprint(&one));
        assert_eq!(slot.turn.get(), 2);
        // As in a handler that has interrupted a change.
        slot.turn.set(3);
        slot.fingerprint.set(0);
        assert_eq!(slot.hashes_of(&one).0, fingerprint(&one));
        assert_eq!(slot.hashes_of(&other).0, fingerprint(&other));
        assert_eq!((slot.turn.get(), slot.fingerprint.get()), (3, 0));
    }
}
