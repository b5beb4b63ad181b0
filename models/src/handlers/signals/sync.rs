//! Cells, atomics and stores before each of which a signal handler can interrupt.

use std::{cell, rc::Rc, sync::atomic};

pub use std::{hint::spin_loop, sync::atomic::Ordering, thread::yield_now};

use crate::handlers::explorer::{PendingStore, barrier, defer, step, stored};

/// A cell whose stores the compiler may move.
#[derive(Default)]
pub struct Cell<T> {
    /// The value in memory, which a handler finds.
    memory: cell::Cell<T>,
}

impl<T: Copy + 'static> Cell<T> {
    pub const fn new(value: T) -> Self {
        Self { memory: cell::Cell::new(value) }
    }

    pub fn get(&self) -> T {
        step();
        let stored = stored(self.address());
        stored.and_then(|value| value.downcast_ref().copied()).unwrap_or_else(|| self.memory.get())
    }

    pub fn set(&self, value: T) {
        step();
        let cell = self.address();
        let perform = move || {
            // SAFETY: the cells of the models are never freed.
            let memory = unsafe { &*(cell as *const Self) };
            memory.memory.set(value);
        };
        defer(PendingStore { cell, perform: Box::new(perform), value: Rc::new(value) });
    }

    pub fn replace(&self, value: T) -> T {
        let before = self.get();
        self.set(value);
        before
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

impl<T: Copy + Default + 'static> Cell<T> {
    pub fn take(&self) -> T {
        self.replace(T::default())
    }
}

macro_rules! atomic {
    ($($name:ident of $value:ty;)*) => {$(
        #[derive(Default)]
        pub struct $name(atomic::$name);

        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }
            pub fn load(&self, order: Ordering) -> $value {
                step();
                self.0.load(order)
            }
            pub fn store(&self, value: $value, order: Ordering) {
                step();
                self.0.store(value, order);
            }
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_add(value, order)
            }
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    )*};
}

atomic! {
    AtomicU32 of u32;
    AtomicU64 of u64;
}

pub use std::sync::atomic::AtomicPtr;

pub(crate) fn compiler_fence(_: Ordering) {
    barrier();
    step();
}

/// One instruction in assembly.
pub(crate) fn claim(word: &Cell<usize>, count: usize) -> usize {
    step();
    barrier();
    let before = word.memory.get();
    word.memory.set(before.wrapping_add(count));
    before
}

pub(crate) fn advance(word: &Cell<usize>, from: usize, to: usize) -> bool {
    step();
    barrier();
    let is_same = word.memory.get() == from;
    if is_same {
        word.memory.set(to);
    }
    is_same
}

pub(crate) fn exchange(word: &Cell<usize>, value: usize) -> usize {
    step();
    barrier();
    word.memory.replace(value)
}

pub(crate) fn add_one(counter: &AtomicU64) {
    step();
    barrier();
    counter.0.fetch_add(1, Ordering::Relaxed);
}

/// A volatile store. Such stores keep their order, but stores to cells may move past them.
pub(crate) unsafe fn store(place: *mut u64, word: u64) {
    step();
    // SAFETY: the caller's promise.
    unsafe { place.write_volatile(word) };
}

pub(crate) fn thread_id() -> u32 {
    1
}

pub(crate) fn prefetch_to_write(_address: usize) {}
