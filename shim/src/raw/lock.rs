//! A mutex that a signal handler may ask for.
//!
//! A handler can interrupt the thread that holds the lock, or a thread that is inside malloc(3). So [`Lock::get`] never waits for
//! its own thread, waits for others only for a limited time, and neither allocates nor sleeps in the kernel while it waits.

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::thread;

/// How long a thread waits. Each holder does microseconds of work; one that holds the lock for longer was interrupted by a handler that
/// may never return.
const PATIENCE: Duration = Duration::from_millis(200);

/// A mutex that is only tried, never waited for without end.
#[derive(Default)]
pub struct Lock<T> {
    holder: AtomicU32,
    value: Mutex<T>,
}

/// The lock, held by this thread.
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
    guard: MutexGuard<'a, T>,
}

impl<T> Lock<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicU32::new(0), value: Mutex::new(value) }
    }

    /// Takes the lock; `None` if this thread holds it already, or if another has held it for 200 ms.
    #[inline]
    pub fn get(&self) -> Option<Held<'_, T>> {
        let guard = self.value.try_lock().or_else(|| self.wait())?;
        self.holder.store(thread::id(), Ordering::Relaxed);
        Some(Held { lock: self, guard })
    }

    #[cold]
    fn wait(&self) -> Option<MutexGuard<'_, T>> {
        let began = Instant::now();
        while self.holder.load(Ordering::Relaxed) != thread::id() && began.elapsed() < PATIENCE {
            for _ in 0..100 {
                if let Some(guard) = self.value.try_lock() {
                    return Some(guard);
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        None
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_does_not_wait_for_itself() {
        let lock = Lock::new(1);
        let held = lock.get().unwrap();
        let began = Instant::now();
        assert!(lock.get().is_none());
        assert!(began.elapsed() < PATIENCE);
        drop(held);
        assert_eq!(lock.get().map(|held| *held), Some(1));
    }

    #[test]
    fn another_thread_gets_the_lock_once_it_is_free_and_gives_up_if_it_never_is() {
        let lock = Lock::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.get().unwrap() += 1));
            }
        });
        assert_eq!(*lock.get().unwrap(), 4000);
        let held = lock.get();
        assert!(std::thread::scope(|scope| scope.spawn(|| lock.get().is_none()).join().unwrap()));
        drop(held);
    }
}
