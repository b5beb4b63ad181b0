//! Work that threads leave to the thread that holds a lock.
//!
//! A thread that finds a [lock](super::lock) held need not wait for it: it [adds](Backlog::add) a step here and
//! [notifies](super::lock::Lock::get_or_notify) the holder, which takes it before it gives the lock back. So the steps are taken in the order
//! in which they were added, by one thread at a time. Nothing here waits or allocates, so a signal handler may add a step, too, and may
//! interrupt a thread that adds one.

use std::{cell::UnsafeCell, mem::MaybeUninit};

use super::sync::{self, AtomicU64, Ordering};

/// Up to `N` steps that nobody has taken. It consists of zero bytes at first, so a static one has no memory until it is used.
pub struct Backlog<S, const N: usize> {
    /// How many steps have got a place.
    added: Line<AtomicU64>,
    taker: Line<Taker>,
    places: [Place<S>; N],
}

/// What shares no line of a processor's cache with anything else.
#[repr(align(64))]
struct Line<T>(T);

struct Taker {
    /// How many steps have been taken.
    taken: AtomicU64,
    /// 1 while a thread takes a step.
    taking: AtomicU64,
}

#[repr(align(64))]
struct Place<S> {
    /// How often a step was written here, and how often one was taken from here, in one number: odd if there is one.
    turns: AtomicU64,
    step: UnsafeCell<MaybeUninit<S>>,
}

impl<S> Place<S> {
    const fn empty() -> Self {
        Self { turns: AtomicU64::new(0), step: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

// SAFETY: a step is written by the thread that got the place, before the store to `turns` that shows it, and read by the one thread that
// takes a step, before the store that frees the place.
unsafe impl<S: Send, const N: usize> Sync for Backlog<S, N> {}

/// There is no place for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<S: Copy, const N: usize> Backlog<S, N> {
    /// Without steps.
    pub const fn empty() -> Self {
        const { assert!(N.is_power_of_two()) };
        let [added, taken, taking] = [const { AtomicU64::new(0) }; 3];
        Self { added: Line(added), taker: Line(Taker { taken, taking }), places: [const { Place::empty() }; N] }
    }

    /// Adds a step, behind all that were added before.
    ///
    /// # Errors
    ///
    /// [`Full`], if `N` steps are there that were not taken.
    pub fn add(&self, step: S) -> Result<(), Full> {
        loop {
            let number = self.added.0.load(Ordering::Relaxed);
            let (place, turns) = self.place(number);
            let now = place.turns.load(Ordering::Acquire);
            if now != turns {
                // Unless others have been here since the number was read, the step before is still here. Or a handler has forked in the
                // middle of a step, and the child goes on with it after `clear`.
                if self.added.0.load(Ordering::Relaxed) == number {
                    return Err(Full);
                }
            } else if self.added.0.compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                // SAFETY: no other thread gets this place in this turn, and none reads it before the store.
                unsafe { (*place.step.get()).write(step) };
                place.turns.store(turns + 1, Ordering::Release);
                return Ok(());
            }
        }
    }

    /// Takes the step that was added first, and shows it to `take`. False if there is none, if the thread that adds it is not ready, or if a
    /// step is being taken.
    pub fn take(&self, take: impl FnOnce(&S)) -> bool {
        let Taker { taken, taking } = &self.taker.0;
        if taking.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let number = taken.load(Ordering::Relaxed);
        let (place, turns) = self.place(number);
        let is_there = place.turns.load(Ordering::Acquire) == turns + 1;
        if is_there {
            // The next one comes from the cache of another processor. It is on its way while this one is taken.
            sync::prefetch(self.place(number + 1).0);
            // SAFETY: the step was written before `turns`, and nobody writes another one before the store below.
            take(unsafe { (*place.step.get()).assume_init_ref() });
            place.turns.store(turns + 2, Ordering::Release);
            taken.store(number + 1, Ordering::Release);
        }
        taking.store(0, Ordering::Release);
        is_there
    }

    /// Whether all steps that were added have been taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.added.0.load(Ordering::Relaxed) == self.taker.0.taken.load(Ordering::Acquire)
    }

    /// How many steps have been added so far.
    pub fn added(&self) -> u64 {
        self.added.0.load(Ordering::Relaxed)
    }

    /// Whether the first so many steps have been taken.
    pub fn has_taken(&self, steps: u64) -> bool {
        self.taker.0.taken.load(Ordering::Acquire) >= steps
    }

    /// Forgets all steps, in a process that has no other thread.
    pub fn clear(&self) {
        if self.added.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        for place in &self.places {
            place.turns.store(0, Ordering::Relaxed);
        }
        self.added.0.store(0, Ordering::Relaxed);
        self.taker.0.taken.store(0, Ordering::Relaxed);
        self.taker.0.taking.store(0, Ordering::Relaxed);
    }

    /// The place of a step, and its turns when it is free for this step.
    #[inline]
    fn place(&self, number: u64) -> (&Place<S>, u64) {
        #[expect(clippy::indexing_slicing, reason = "a remainder is less than the number of places")]
        let place = &self.places[number as usize % N];
        (place, number / N as u64 * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken<const N: usize>(backlog: &Backlog<u64, N>) -> Vec<u64> {
        let mut all = Vec::new();
        while backlog.take(|step| all.push(*step)) {}
        all
    }

    #[test]
    fn steps_are_taken_in_the_order_in_which_they_were_added() {
        let backlog = Backlog::<u64, 4>::empty();
        for lap in 0..5 {
            for step in 0..4 {
                assert_eq!(backlog.add(lap * 10 + step), Ok(()));
            }
            assert_eq!(backlog.add(99), Err(Full));
            assert_eq!(taken(&backlog), [0, 1, 2, 3].map(|step| lap * 10 + step));
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn a_place_that_was_left_in_a_wrong_state_holds_up_nobody() {
        let backlog = Backlog::<u64, 2>::empty();
        backlog.places[0].turns.store(2, Ordering::Relaxed);
        assert_eq!(backlog.add(1), Err(Full));
    }

    #[test]
    fn a_cleared_backlog_takes_steps_again() {
        let backlog = Backlog::<u64, 2>::empty();
        backlog.add(1).unwrap();
        backlog.add(2).unwrap();
        backlog.clear();
        assert!(backlog.is_empty());
        backlog.add(3).unwrap();
        assert_eq!(taken(&backlog), [3]);
    }

    #[test]
    fn no_step_of_many_threads_is_lost() {
        const STEPS: u64 = 2000;
        static BACKLOG: Backlog<u64, 8> = Backlog::empty();
        let mut all = Vec::new();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for step in 0..STEPS {
                        while BACKLOG.add(thread << 32 | step).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            while (all.len() as u64) < 3 * STEPS {
                all.extend(taken(&BACKLOG));
                std::thread::yield_now();
            }
        });
        for thread in 0..3 {
            let own = all.iter().filter(|step| *step >> 32 == thread).map(|step| step & 0xffff_ffff);
            assert!(own.eq(0..STEPS));
        }
    }
}
