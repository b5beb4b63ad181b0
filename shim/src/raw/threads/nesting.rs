//! Detects nested calls of a thread: an adapter with changed code also calls its own functions through the hooks.
//!
//! Not for functions in a table, which an adapter does not call.

use std::marker::PhantomData;

use super::thread;

/// The outermost call of this thread, as long as the value lives.
pub struct Outermost {
    /// Not for other threads.
    of_this_thread: PhantomData<*const ()>,
}

impl Outermost {
    /// Begins a call; `None` inside another one.
    #[inline]
    pub fn begin() -> Option<Self> {
        let was_inside = thread::own().inside.replace(true);
        (!was_inside).then_some(Self { of_this_thread: PhantomData })
    }
}

impl Drop for Outermost {
    fn drop(&mut self) {
        thread::own().inside.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_of_nested_calls_is_the_outermost() {
        let outer = Outermost::begin();
        assert!(outer.is_some() && Outermost::begin().is_none());
        drop(outer);
        assert!(Outermost::begin().is_some());
    }
}
