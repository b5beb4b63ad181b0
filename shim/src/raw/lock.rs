//! A mutex that a signal handler may ask for.
//!
//! A handler can interrupt the thread that holds the lock, or a thread that is inside malloc(3). So [`Lock::get`] never waits for
//! its own thread, waits for others only for a limited time, and does not allocate while it waits.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    time::{Duration, Instant},
};

use super::{
    sync::{self, AtomicU32, Ordering},
    thread,
};

/// How long a thread waits. Each holder does microseconds of work, but it may be one of many threads on a loaded machine; or a
/// handler interrupted it that never returns, or that waits for this thread.
const PATIENCE: Duration = Duration::from_secs(3);

/// In the word of a lock: another thread has left work to the one that holds it.
const NOTIFIED: u32 = 1 << 31;

/// A mutex that is never waited for without end.
#[derive(Default)]
pub struct Lock<T> {
    /// The thread that holds it, and perhaps [`NOTIFIED`]; 0 if none does. It is taken by one instruction, so that a handler always
    /// knows whose it is.
    holder: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Held` only, of which there is one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The lock, held by this thread.
pub struct Held<'a, T> {
    lock: &'a Lock<T>,
    /// The thread that holds it.
    thread: u32,
    /// It is given back by the thread that took it.
    of_this_thread: PhantomData<*const ()>,
}

impl<T> Lock<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; `None` if this thread holds it already, or if another holds it for 3 s.
    #[inline]
    pub fn get(&self) -> Option<Held<'_, T>> {
        self.get_within(PATIENCE)
    }

    /// The same with another limit.
    #[inline]
    pub fn get_within(&self, patience: Duration) -> Option<Held<'_, T>> {
        self.try_get().or_else(|| self.wait(patience))
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_get(&self) -> Option<Held<'_, T>> {
        self.try_get_as(thread::id())
    }

    /// The same for a caller that knows its [thread](thread::id) already.
    #[inline]
    pub fn try_get_as(&self, thread: u32) -> Option<Held<'_, T>> {
        let taken = self.holder.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Held { lock: self, thread, of_this_thread: PhantomData })
    }

    /// Takes the lock if it is free. If not, its holder gets to know at [`Held::give_back`] what this thread did before.
    #[inline]
    pub fn get_or_notify(&self) -> Option<Held<'_, T>> {
        self.try_get().or_else(|| self.notify())
    }

    #[cold]
    fn notify(&self) -> Option<Held<'_, T>> {
        loop {
            let holder = self.holder.load(Ordering::Relaxed);
            if holder == 0 {
                if let Some(held) = self.try_get() {
                    return Some(held);
                }
            } else {
                // Also where it is notified already: the holder sees what was done before the latest exchange.
                let notified =
                    self.holder.compare_exchange(holder, holder | NOTIFIED, Ordering::Release, Ordering::Relaxed);
                if notified.is_ok() {
                    return None;
                }
            }
        }
    }

    /// The lock again, after [`Held::leave`].
    ///
    /// # Safety
    ///
    /// The thread that left it taken calls this, or that thread in a child of its process, and only once.
    pub(super) unsafe fn resume(&self) -> Held<'_, T> {
        Held { lock: self, thread: thread::id(), of_this_thread: PhantomData }
    }

    #[cold]
    fn wait(&self, patience: Duration) -> Option<Held<'_, T>> {
        let began = Instant::now();
        while self.holder.load(Ordering::Relaxed) & !NOTIFIED != thread::id() && began.elapsed() < patience {
            for _ in 0..100 {
                if self.holder.load(Ordering::Relaxed) == 0
                    && let Some(held) = self.try_get()
                {
                    return Some(held);
                }
                sync::spin_loop();
            }
            sync::yield_now();
        }
        None
    }
}

impl<'a, T> Held<'a, T> {
    /// Gives the lock back; not if another thread has [notified](Lock::get_or_notify) this one since it took the lock or last called this.
    #[inline]
    pub fn give_back(self) -> Option<Self> {
        let holder = &self.lock.holder;
        let own = self.thread;
        if holder.compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            std::mem::forget(self);
            return None;
        }
        // Nobody but the holder takes the notice back, so this cannot fail.
        let _ = holder.compare_exchange(own | NOTIFIED, own, Ordering::Acquire, Ordering::Relaxed);
        Some(self)
    }

    /// Leaves the lock taken, without a holder that would give it back.
    pub(super) fn leave(self) -> &'a Lock<T> {
        let lock = self.lock;
        std::mem::forget(self);
        lock
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Release);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one `Held` of a lock at a time, and this borrows it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
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
        let held = lock.get().unwrap();
        let began = Instant::now();
        assert!(lock.get().is_none());
        assert!(began.elapsed() < PATIENCE);
        drop(held);
        assert_eq!(lock.get().map(|held| *held), Some(1));
    }

    #[test]
    fn the_holder_is_told_what_others_have_left_to_it() {
        let lock = Lock::new(());
        let held = lock.get_or_notify().unwrap();
        std::thread::scope(|scope| scope.spawn(|| assert!(lock.get_or_notify().is_none())).join().unwrap());
        assert!(lock.get().is_none(), "this thread holds it");
        let held = held.give_back().expect("it was notified");
        assert!(held.give_back().is_none());
        assert!(lock.get_or_notify().is_some());
        drop(lock.get());
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
