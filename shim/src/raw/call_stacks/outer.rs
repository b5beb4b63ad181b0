//! The current call of Unified Runtime of this thread: calls that the runtime makes in it are inner calls.
//!
//! It is in the frame of the function that records the call, and the thread has its address. The address stays after
//! a longjmp(3), so it is valid only if it is a little above the end of the stack and has the contents from
//! [`Outer::begin`].

use std::{cell::Cell, ops::Range};

use super::stack;
use crate::raw::threads::variables::{Variable, places};

/// A call of a thread.
#[derive(Debug)]
#[repr(C)]
pub struct Outer {
    /// The address of this value, after it has begun.
    place: Cell<usize>,
    /// The address of the call that this one is in; 0 for none.
    enclosing: Cell<usize>,
    call: u64,
}

/// The address of the current call of a thread; 0 for none.
struct Current(Cell<usize>);

// SAFETY: a number.
unsafe impl Variable for Current {
    const PLACE: Range<usize> = places::OUTER;
}

impl Outer {
    /// A call with a word that identifies it.
    #[inline]
    pub fn new(call: u64) -> Self {
        Self { place: Cell::new(0), enclosing: Cell::new(0), call }
    }

    /// Makes it the current call of this thread. It must not move before [`Self::end`].
    #[inline]
    pub fn begin(&self) {
        let place = std::ptr::from_ref(self).expose_provenance();
        self.place.set(place);
        self.enclosing.set(Current::own().0.replace(place));
    }

    /// Makes the outer call the current one again.
    #[inline]
    pub fn end(&self) {
        Current::own().0.set(self.enclosing.get());
    }
}

/// The word of the current call of this thread; `None` if there is none.
#[inline]
pub fn call() -> Option<u64> {
    let place = Current::own().0.get();
    // SAFETY: the call is there, and has not ended.
    stack::is_near_with(place, place).then(|| unsafe { (*std::ptr::with_exposed_provenance::<Outer>(place)).call })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_nested() {
        assert_eq!(call(), None);
        let outer = Outer::new(1);
        assert_eq!(call(), None, "it has not begun");
        outer.begin();
        let inner = Outer::new(2);
        inner.begin();
        assert_eq!(call(), Some(2));
        inner.end();
        assert_eq!(call(), Some(1));
        outer.end();
        assert_eq!(call(), None);
    }

    #[test]
    fn a_call_that_was_left_by_longjmp_is_over() {
        let abandoned = Outer::new(3);
        abandoned.begin();
        assert_eq!(call(), Some(3));
        // As if another frame were there now.
        abandoned.place.set(7);
        assert_eq!(call(), None);
        let next = Outer::new(4);
        next.begin();
        assert_eq!(call(), Some(4));
        next.end();
        assert_eq!(call(), None);
        // The end of a frame further down.
        Current::own().0.set((&raw const abandoned).addr() - (1 << 16));
        assert_eq!(call(), None);
        Current::own().0.set(0);
    }
}
