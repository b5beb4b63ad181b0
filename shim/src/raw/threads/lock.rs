//! A mutex that a signal handler may lock.
//!
//! A handler can interrupt the thread that holds the lock, or malloc(3). So [`Lock::get`] never waits for its own
//! thread, waits for others for a limited time, and does not allocate.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};
use std::{cell::UnsafeCell, marker::PhantomData};

use super::super::signals::sync::{self, AtomicU32, Ordering};
use super::thread;

/// How long a thread waits. Holders need microseconds, but there may be many on a loaded machine, and a holder may be
/// interrupted by a handler that never returns, or that waits for this thread.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// A mutex with a timeout.
#[derive(Default)]
pub struct Lock<T> {
    /// The thread that holds it; 0 for none. Set by one instruction, so that a handler always knows the holder.
    holder: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `LockGuard` only, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The guard of a lock that this thread holds.
pub struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
    /// Only the thread that locked it unlocks it.
    of_this_thread: PhantomData<*const ()>,
}

impl<T> Lock<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; `None` if this thread holds it already, or if another holds it for 3 s.
    #[inline]
    pub fn get(&self) -> Option<LockGuard<'_, T>> {
        self.try_get().or_else(|| self.wait())
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_get(&self) -> Option<LockGuard<'_, T>> {
        let taken = self.holder.compare_exchange(0, thread::id(), Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| LockGuard { lock: self, of_this_thread: PhantomData })
    }

    /// The guard of a lock after [`LockGuard::into_locked`].
    ///
    /// # Safety
    ///
    /// The thread that called `into_locked` calls this once, in its process or in a child.
    pub(crate) unsafe fn resume(&self) -> LockGuard<'_, T> {
        LockGuard { lock: self, of_this_thread: PhantomData }
    }

    #[cold]
    fn wait(&self) -> Option<LockGuard<'_, T>> {
        let began = Instant::now();
        while self.holder.load(Ordering::Relaxed) != thread::id() && began.elapsed() < LOCK_TIMEOUT {
            for _ in 0..100 {
                if self.holder.load(Ordering::Relaxed) == 0
                    && let Some(guard) = self.try_get()
                {
                    return Some(guard);
                }
                sync::spin_loop();
            }
            sync::yield_now();
        }
        None
    }
}

impl<'a, T> LockGuard<'a, T> {
    /// Drops the guard without unlocking.
    pub(crate) fn into_locked(self) -> &'a Lock<T> {
        let lock = self.lock;
        std::mem::forget(self);
        lock
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Release);
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one `LockGuard` of a lock at a time, and this borrows it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let lock = Lock::new(1);
        let guard = lock.get().unwrap();
        let began = Instant::now();
        assert!(lock.get().is_none());
        assert!(began.elapsed() < LOCK_TIMEOUT);
        drop(guard);
        assert_eq!(lock.get().map(|guard| *guard), Some(1));
    }

    #[test]
    fn another_thread_gets_the_lock_once_it_is_free() {
        let lock = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.get().unwrap() += 1));
            }
        });
        assert_eq!(*lock.get().unwrap(), 4000);
    }
}
