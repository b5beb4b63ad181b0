//! Finds the caller of a library that calls for others: the first one that does not call for others itself.
//!
//! Unwinding takes microseconds and reads the tables of several libraries. So the path from the library's call to
//! that caller is cached: the return addresses and their distances on the stack. A return address determines the
//! layout of its frame, so a stack with the same addresses at the same distances has the same caller. Paths have no
//! absolute addresses of stacks, so all threads share the cache. Must run no code of the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::caller;
use crate::raw::threads::mutex::Mutex;

/// The most paths in the cache. Others are unwound each time.
const CACHE_LIMIT: usize = 32;

/// The longest path, in frames after that of the library.
pub const PATH_LIMIT: usize = 12;

/// The largest frame in bytes. A path with a larger one is not cached.
const FRAME_SIZE_LIMIT: usize = 2048;

/// The place of a return address on the stack, and the address.
pub type Frame = (usize, usize);

/// A frame of a path: the distance of its return address from the one before, and the address.
struct Step {
    distance: AtomicUsize,
    address: AtomicUsize,
}

struct CallPath {
    /// The return address of the library's call; 0 for none.
    from: AtomicUsize,
    /// A distance of 0 ends it.
    steps: [Step; PATH_LIMIT],
}

static CALLER_CACHE: [CallPath; CACHE_LIMIT] = [const {
    CallPath {
        from: AtomicUsize::new(0),
        steps: [const { Step { distance: AtomicUsize::new(0), address: AtomicUsize::new(0) } }; PATH_LIMIT],
    }
}; CACHE_LIMIT];

static CACHE_LENGTH: Mutex<usize> = Mutex::new(0);

/// The last address of the cached path that matches the stack from the current call of this thread on
/// ([`caller::entry`]); `None` without a match.
pub fn find() -> Option<usize> {
    let from = caller::entry();
    let paths = CALLER_CACHE.iter().take_while(|path| path.from.load(Ordering::Acquire) != 0);
    // SAFETY: it is the current call of this thread.
    paths.filter(|path| path.from.load(Ordering::Relaxed) == from.1).find_map(|path| unsafe { path.end(from) })
}

impl CallPath {
    /// # Safety
    ///
    /// `from` is the current call of this thread.
    unsafe fn end(&self, from: Frame) -> Option<usize> {
        // SAFETY: each place is in the frame of the address before it, or, if that has another size now, less than
        // `FRAME_SIZE_LIMIT` bytes above. The stack continues there, with outer frames and the C library's data at its
        // beginning.
        let is_there = |(place, address): Frame| unsafe {
            std::ptr::with_exposed_provenance::<usize>(place).read_volatile() == address
        };
        if !is_there(from) {
            return None;
        }
        let mut place = from.0;
        let mut end = None;
        for step in &self.steps {
            let distance = step.distance.load(Ordering::Relaxed);
            let address = step.address.load(Ordering::Relaxed);
            if distance == 0 {
                break;
            }
            place += distance;
            if !is_there((place, address)) {
                return None;
            }
            end = Some(address);
        }
        end
    }
}

/// Adds an unwound path to the cache: its frames, from the library's on, followed by zeros. Returns whether it was
/// added.
pub fn insert(from: Frame, frames: &[Frame]) -> bool {
    let length = frames.iter().take_while(|(_, address)| *address != 0).count();
    let Some((first, outer)) = frames.get(..length).and_then(<[Frame]>::split_first) else { return false };
    let distances = || frames.iter().zip(outer).map(|((one, _), (next, _))| next.wrapping_sub(*one));
    let can_be_found = distances().all(|distance| (1..=FRAME_SIZE_LIMIT).contains(&distance));
    if *first != from || !(1..=PATH_LIMIT).contains(&outer.len()) || !can_be_found {
        return false;
    }
    let Some(mut count) = CACHE_LENGTH.try_lock() else { return false };
    let Some(free) = CALLER_CACHE.get(*count) else { return false };
    for ((step, distance), (_, address)) in free.steps.iter().zip(distances()).zip(outer) {
        step.distance.store(distance, Ordering::Relaxed);
        step.address.store(*address, Ordering::Relaxed);
    }
    free.from.store(from.1, Ordering::Release);
    *count += 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::call_stacks::caller::Noted;
    use crate::raw::threads::variables::Variable as _;

    /// Simulates a call with this stack.
    fn enter(stack: &[usize]) -> Frame {
        let own = Noted::own();
        own.entry.set(stack.as_ptr().expose_provenance());
        own.caller.set(stack[0]);
        (own.entry.get(), own.caller.get())
    }

    fn path(stack: &[usize], places: &[usize]) -> Vec<Frame> {
        let frames = places.iter().map(|place| ((&raw const stack[*place]).expose_provenance(), stack[*place]));
        frames.chain([(0, 0)]).collect()
    }

    #[test]
    fn a_way_is_found_wherever_the_stack_is() {
        let stack = [0x1000, 1, 2, 0x1100, 3, 0x1200, 4];
        let from = enter(&stack);
        assert_eq!(find(), None);
        assert!(insert(from, &path(&stack, &[0, 3, 5])));
        assert_eq!(find(), Some(0x1200));
        let elsewhere = [0x1000, 9, 9, 0x1100, 9, 0x1200, 9];
        enter(&elsewhere);
        assert_eq!(find(), Some(0x1200));
        let other = [0x1000, 1, 2, 0x1100, 3, 0x1300, 4];
        let from = enter(&other);
        assert_eq!(find(), None, "another caller");
        assert!(insert(from, &path(&other, &[0, 3, 5])));
        assert_eq!(find(), Some(0x1300));
        enter(&stack);
        assert_eq!(find(), Some(0x1200), "both are kept");
    }

    #[test]
    fn a_way_that_cannot_be_known_again_is_not_kept() {
        let stack = vec![0x2000; 2 * FRAME_SIZE_LIMIT];
        let from = enter(&stack);
        let mut long: Vec<_> = (0..PATH_LIMIT + 2).collect();
        assert!(!insert(from, &path(&stack, &long)), "too many frames");
        assert!(!insert(from, &path(&stack, &[0, FRAME_SIZE_LIMIT])), "a frame that is too large");
        assert!(!insert(from, &path(&stack, &[0])), "no caller");
        assert!(!insert(from, &path(&stack, &[1, 2])), "another beginning");
        assert!(!insert(from, &path(&stack, &[0, 2, 1])), "the stack goes up");
        long.pop();
        assert!(insert(from, &path(&stack, &long)));
    }
}
