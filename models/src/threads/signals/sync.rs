//! Loom's atomics, under the names that the shim uses.
//!
//! They live as long as one execution and cannot be made in a constant. So each atomic here makes one at its first
//! use in an execution.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64 as Number;

pub use loom::thread::yield_now as spin_loop;
pub use loom::thread::yield_now;
pub use std::cell::Cell;
pub use std::sync::atomic::{Ordering, compiler_fence};

/// The number of the current execution, over all tests.
static EXECUTION: Number = Number::new(0);

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Runs a function in every order of its threads.
pub fn explore(run: impl Fn() + Sync + Send + 'static) {
    loom::model(move || {
        CURRENT.set(EXECUTION.fetch_add(1, Ordering::Relaxed) + 1);
        run();
    });
}

/// An initial value, and loom's atomic of the current execution.
struct PerExecution<V, A: 'static> {
    initial: V,
    atomic: Mutex<Option<(u64, &'static A)>>,
}

impl<V: Copy, A: 'static> PerExecution<V, A> {
    const fn new(initial: V) -> Self {
        Self { initial, atomic: Mutex::new(None) }
    }

    fn get(&self, make: impl Fn(V) -> A) -> &'static A {
        let mut atomic = self.atomic.lock().unwrap();
        match *atomic {
            Some((execution, atomic)) if execution == CURRENT.get() => atomic,
            _ => {
                let new: &'static A = Box::leak(Box::new(make(self.initial)));
                *atomic = Some((CURRENT.get(), new));
                new
            }
        }
    }
}

macro_rules! atomic {
    ($($name:ident of $value:ty;)*) => {$(
        pub struct $name(PerExecution<$value, loom::sync::atomic::$name>);

        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(PerExecution::new(value))
            }
            fn atomic(&self) -> &'static loom::sync::atomic::$name {
                self.0.get(loom::sync::atomic::$name::new)
            }
            pub fn load(&self, order: Ordering) -> $value {
                self.atomic().load(order)
            }
            pub fn store(&self, value: $value, order: Ordering) {
                self.atomic().store(value, order);
            }
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.atomic().fetch_add(value, order)
            }
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.atomic().fetch_or(value, order)
            }
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.atomic().compare_exchange(current, new, success, failure)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    )*};
}

atomic! {
    AtomicU32 of u32;
    AtomicU64 of u64;
}

/// An atomic pointer.
pub struct AtomicPtr<T: 'static>(PerExecution<*mut T, loom::sync::atomic::AtomicPtr<T>>);

// SAFETY: as `std::sync::atomic::AtomicPtr`.
unsafe impl<T> Sync for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Send for AtomicPtr<T> {}

impl<T> AtomicPtr<T> {
    pub const fn new(value: *mut T) -> Self {
        Self(PerExecution::new(value))
    }
    fn atomic(&self) -> &'static loom::sync::atomic::AtomicPtr<T> {
        self.0.get(loom::sync::atomic::AtomicPtr::new)
    }
    pub fn load(&self, order: Ordering) -> *mut T {
        self.atomic().load(order)
    }
    pub fn store(&self, value: *mut T, order: Ordering) {
        self.atomic().store(value, order);
    }
    pub fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.atomic().compare_exchange(current, new, success, failure)
    }
}

pub(crate) fn claim(word: &Cell<usize>, count: usize) -> usize {
    word.replace(word.get() + count)
}

pub(crate) fn advance(word: &Cell<usize>, from: usize, to: usize) -> bool {
    let is_same = word.get() == from;
    if is_same {
        word.set(to);
    }
    is_same
}

pub(crate) fn exchange(word: &Cell<usize>, value: usize) -> usize {
    word.replace(value)
}

/// One instruction for the thread itself, but a load and a store for all others.
pub(crate) fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The number of the thread, which is never 0.
pub(crate) fn thread_id() -> u32 {
    loom::thread_local! {
        static ID: u32 = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
    }
    static NEXT: Number = Number::new(1);
    ID.with(|id| *id)
}

pub(crate) fn prefetch_to_write(_address: usize) {}
