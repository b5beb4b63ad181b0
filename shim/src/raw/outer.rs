//! The call of Unified Runtime that this thread is in: what the runtime calls meanwhile is a part of it.
//!
//! It lies in the frame of the function that records the call, and the thread has its place. A frame that was left by
//! longjmp(3) stays noted, so a call is believed only where its place is a little above the end of the stack and
//! holds what [`Outer::begin`] wrote there.

use std::cell::Cell;

use super::{stack, variables};

/// A call that a thread is in.
#[derive(Debug)]
#[repr(C)]
pub struct Outer {
    /// Where this is, once it has begun.
    place: Cell<usize>,
    /// The place of the call that this one was made in; 0 for none.
    enclosing: Cell<usize>,
    call: u64,
}

impl Outer {
    /// The call with this number, or what else says which one it is.
    #[inline]
    pub fn new(call: u64) -> Self {
        Self { place: Cell::new(0), enclosing: Cell::new(0), call }
    }

    /// Says that this thread is in the call now. It must not move before [`Self::end`].
    #[inline]
    pub fn begin(&self) {
        let place = std::ptr::from_ref(self).expose_provenance();
        self.place.set(place);
        self.enclosing.set(variables::own().outer.replace(place));
    }

    /// Says that this thread is again in what it was in before.
    #[inline]
    pub fn end(&self) {
        variables::own().outer.set(self.enclosing.get());
    }
}

/// What [`Outer::new`] got for the call that this thread is in; `None` if it is in none.
#[inline]
pub fn call() -> Option<u64> {
    let place = variables::own().outer.get();
    // SAFETY: the call lies there, and is not over.
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
        // As when another frame lies there now.
        abandoned.place.set(7);
        assert_eq!(call(), None);
        let next = Outer::new(4);
        next.begin();
        assert_eq!(call(), Some(4));
        next.end();
        assert_eq!(call(), None);
        // The end of a frame that lies below.
        variables::own().outer.set((&raw const abandoned).addr() - (1 << 16));
        assert_eq!(call(), None);
        variables::own().outer.set(0);
    }
}
