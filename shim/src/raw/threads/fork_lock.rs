//! A lock that a thread holds while it forks.
//!
//! It passes the guard from the handler before a fork(2) to those after it. A thread-local variable would need space
//! in every thread.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::lock::{Lock, LockGuard};
use super::variables;

/// A locked lock of the thread that has put it here.
pub struct ForkLock<T: 'static> {
    /// The address of the thread's variables, which is the same in the child; 0 for no thread.
    owner: AtomicUsize,
    /// Read and written by that thread only.
    lock: AtomicPtr<Lock<T>>,
}

fn this_thread() -> usize {
    variables::address().addr()
}

impl<T> Default for ForkLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ForkLock<T> {
    /// No lock.
    pub const fn new() -> Self {
        Self { owner: AtomicUsize::new(0), lock: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Stores a lock of this thread. It is released at once if another thread's lock is here, which happens only if the
    /// wait for that timed out.
    pub fn put(&self, guard: LockGuard<'static, T>) {
        if self.owner.compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.lock.store(ptr::from_ref(guard.into_locked()).cast_mut(), Ordering::Relaxed);
        }
    }

    /// The lock that this thread has put here.
    pub fn take(&self) -> Option<LockGuard<'static, T>> {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        let lock = self.lock.load(Ordering::Relaxed);
        self.owner.store(0, Ordering::Release);
        // SAFETY: this thread has put it here, as `owner` says, by `into_locked`. It is a static reference.
        Some(unsafe { (*lock).resume() })
    }

    /// The lock that this thread, the only one of a forked child, has put here. Another thread's lock is removed.
    pub fn take_in_child(&self) -> Option<LockGuard<'static, T>> {
        let own = self.take();
        self.owner.store(0, Ordering::Relaxed);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_for_the_thread_that_took_it() {
        static LOCK: Lock<u32> = Lock::new(1);
        static OTHER: Lock<u32> = Lock::new(2);
        static FORK_LOCK: ForkLock<u32> = ForkLock::new();
        assert!(FORK_LOCK.take().is_none());
        FORK_LOCK.put(LOCK.get().unwrap());
        assert!(LOCK.get().is_none(), "it is still taken");
        std::thread::spawn(|| {
            assert!(FORK_LOCK.take().is_none());
            FORK_LOCK.put(OTHER.get().unwrap());
            assert!(OTHER.get().is_some(), "there was no room for it");
        })
        .join()
        .unwrap();
        assert_eq!(FORK_LOCK.take().map(|guard| *guard), Some(1));
        assert!(LOCK.get().is_some());
    }

    #[test]
    fn a_child_forgets_what_another_thread_of_its_parent_has() {
        static LOCK: Lock<u32> = Lock::new(1);
        static CURRENT: Lock<u32> = Lock::new(2);
        static FORK_LOCK: ForkLock<u32> = ForkLock::new();
        std::thread::spawn(|| FORK_LOCK.put(LOCK.get().unwrap())).join().unwrap();
        assert!(FORK_LOCK.take_in_child().is_none());
        FORK_LOCK.put(CURRENT.get().unwrap());
        assert_eq!(FORK_LOCK.take_in_child().map(|guard| *guard), Some(2));
    }
}
