//! Work that threads leave to the thread that holds a lock.
//!
//! A thread that would have to wait for a [lock](super::lock), or for what others have in their caches, [adds](Backlog::add) a step here
//! instead, in a queue that other threads do not use. Whoever holds the lock [takes](Backlog::take) the steps of all queues in the order of
//! their times. While a single thread has steps, it need not add them: it [is alone](Backlog::is_alone). Nothing here waits or allocates,
//! so a signal handler may add a step, too, and may interrupt a thread that adds one.
//!
//! A step that was added before another one began is taken before it. The taker looks at the clock first, and leaves steps of a later
//! time where they are. What came before a step of an earlier time had been added by then, and so the taker sees it, in whatever order
//! it looks through the queues.

use std::{cell::UnsafeCell, mem::MaybeUninit};

use super::sync::{self, AtomicU32, AtomicU64, Ordering};

/// `Q` queues of up to `N` steps that nobody has taken. It consists of zero bytes at first, so a static one has no memory until it is used.
pub struct Backlog<S, const Q: usize, const N: usize> {
    /// The thread that is alone, [`SEVERAL`], or 0 if none has been here.
    alone: Line<AtomicU32>,
    /// A bit for each queue that was used.
    used: Line<AtomicU64>,
    taker: Line<Taker>,
    queues: [Queue<S, N>; Q],
}

/// Instead of the thread that is alone: there are others.
const SEVERAL: u32 = u32::MAX;

/// What shares no line of a processor's cache with anything else.
#[repr(align(64))]
struct Line<T>(T);

struct Taker {
    /// 1 while a thread takes steps.
    taking: AtomicU64,
    /// Up to which time steps were taken last.
    until: AtomicU64,
}

/// The steps of some threads. Usually of one.
struct Queue<S, const N: usize> {
    /// How many steps have got a place.
    added: Line<AtomicU64>,
    /// How many steps have been taken.
    taken: Line<AtomicU64>,
    places: [Place<S>; N],
}

// A processor may fetch two lines at a time.
#[repr(align(128))]
struct Place<S> {
    /// How often a step was written here, and how often one was taken from here, in one number: odd if there is one.
    turns: AtomicU64,
    step: UnsafeCell<MaybeUninit<S>>,
}

/// What can be left for another thread to take.
pub trait Timed: Copy {
    /// When it happened. What ends goes before what begins at the same time.
    fn time(&self) -> Time;
}

/// The place of a step among those of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// Of a step that a queue does not have.
    const NEVER: Self = Self(u64::MAX);

    /// Where something begins or ends at that time, in nanoseconds of a clock that all threads share, below 2^63.
    #[inline]
    pub const fn new(nanos: u64, begins: bool) -> Self {
        Self(nanos << 1 | begins as u64)
    }

    /// The nanoseconds.
    #[inline]
    pub const fn nanos(self) -> u64 {
        self.0 >> 1
    }
}

/// A step was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// How many steps are in its queue.
    pub waiting: u64,
    /// A thread was alone before. It may not have noticed that it is no longer.
    pub has_ended_alone: bool,
}

/// There is no place for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The next step of a queue.
enum Next<'q, S> {
    Step(&'q S),
    /// None is there, or one is being added.
    None,
    /// One is being added, and others are behind it.
    Interrupted,
}

// SAFETY: a step is written by the thread that got the place, before the store to `turns` that shows it, and read by the one thread that
// takes steps, before the store that frees the place.
unsafe impl<S: Send, const N: usize> Sync for Queue<S, N> {}

impl<S> Place<S> {
    const fn empty() -> Self {
        Self { turns: AtomicU64::new(0), step: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

impl<S: Copy, const N: usize> Queue<S, N> {
    const fn empty() -> Self {
        let [added, taken] = [const { Line(AtomicU64::new(0)) }; 2];
        Self { added, taken, places: [const { Place::empty() }; N] }
    }

    /// Gets a place for a step and writes it there; `claimed` is called in between, and says whether a thread was alone before.
    #[inline]
    fn add(&self, step: S, claimed: impl Fn() -> bool) -> Result<Added, Full> {
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
            } else if self.added.0.compare_exchange(number, number + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                let has_ended_alone = claimed();
                // SAFETY: no other thread gets this place in this turn, and none reads it before the store.
                unsafe { (*place.step.get()).write(step) };
                place.turns.store(turns + 1, Ordering::Release);
                // The taker has the next one in its cache.
                let next = std::ptr::from_ref(self.place(number + 1).0).addr();
                (next..next + size_of::<Place<S>>()).step_by(64).for_each(sync::prefetch_to_write);
                let waiting = (number + 1).saturating_sub(self.taken.0.load(Ordering::Relaxed));
                return Ok(Added { waiting, has_ended_alone });
            }
        }
    }

    /// The next step.
    ///
    /// # Safety
    ///
    /// No other thread takes a step until the reference is gone.
    unsafe fn next(&self) -> Next<'_, S> {
        let number = self.taken.0.load(Ordering::Relaxed);
        let (place, turns) = self.place(number);
        if place.turns.load(Ordering::Acquire) == turns + 1 {
            // SAFETY: the step was written before `turns`, and nobody writes another one before `pass`.
            return Next::Step(unsafe { (*place.step.get()).assume_init_ref() });
        }
        if self.added.0.load(Ordering::Relaxed) > number + 1 { Next::Interrupted } else { Next::None }
    }

    /// Passes over the next step, which is there, and frees its place.
    fn pass(&self) {
        let number = self.taken.0.load(Ordering::Relaxed);
        let (place, turns) = self.place(number);
        // It comes from the cache of another processor. It is on its way while this one is done with.
        sync::prefetch(self.place(number + 2).0);
        place.turns.store(turns + 2, Ordering::Release);
        self.taken.0.store(number + 1, Ordering::Release);
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.added.0.load(Ordering::Relaxed) == self.taken.0.load(Ordering::Acquire)
    }

    fn clear(&self) {
        for place in &self.places {
            place.turns.store(0, Ordering::Relaxed);
        }
        self.added.0.store(0, Ordering::Relaxed);
        self.taken.0.store(0, Ordering::Relaxed);
    }

    /// The place of a step, and its turns when it is free for this step.
    #[inline]
    fn place(&self, number: u64) -> (&Place<S>, u64) {
        #[expect(clippy::indexing_slicing, reason = "a remainder is less than the number of places")]
        let place = &self.places[number as usize % N];
        (place, number / N as u64 * 2)
    }
}

impl<S: Timed, const Q: usize, const N: usize> Backlog<S, Q, N> {
    /// Without steps.
    pub const fn empty() -> Self {
        const { assert!(N.is_power_of_two() && Q.is_power_of_two() && Q <= 64) };
        let [taking, until] = [const { AtomicU64::new(0) }; 2];
        Self {
            alone: Line(AtomicU32::new(0)),
            used: Line(AtomicU64::new(0)),
            taker: Line(Taker { taking, until }),
            queues: [const { Queue::empty() }; Q],
        }
    }

    /// Whether only this thread has steps. If it still is so under the lock, nothing is left that was added before, and the thread may take
    /// its step itself.
    #[inline]
    pub fn is_alone(&self, thread: u32) -> bool {
        let alone = self.alone.0.load(Ordering::Relaxed);
        alone == thread || alone == 0 && self.is_first(thread)
    }

    #[cold]
    fn is_first(&self, thread: u32) -> bool {
        self.alone.0.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Adds a step, behind all that the thread has added before. From then on no thread is alone.
    ///
    /// # Errors
    ///
    /// [`Full`], if `N` steps are there that were not taken.
    #[inline]
    pub fn add(&self, thread: u32, step: S) -> Result<Added, Full> {
        let number = thread as usize % Q;
        let bit = 1 << number;
        if self.used.0.load(Ordering::Relaxed) & bit == 0 {
            self.used.0.fetch_or(bit, Ordering::Relaxed);
        }
        #[expect(clippy::indexing_slicing, reason = "a remainder is less than the number of queues")]
        let queue = &self.queues[number];
        queue.add(step, || {
            // Either this sees that a thread is alone, or that thread sees in `leave_alone` that something was added.
            sync::fence_after_exchange();
            let has_ended_alone = self.alone.0.load(Ordering::Relaxed) != SEVERAL;
            if has_ended_alone {
                self.alone.0.store(SEVERAL, Ordering::Relaxed);
            }
            has_ended_alone
        })
    }

    /// Lets a thread take its steps itself from now on, if nothing is left; which is known when this returns. For the holder of the lock.
    pub fn leave_alone(&self, thread: u32) {
        // An exchange, for the order of this and what `is_empty` reads.
        let alone = self.alone.0.load(Ordering::Relaxed);
        if self.alone.0.compare_exchange(alone, thread, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            sync::fence_after_exchange();
            if !self.is_empty() {
                self.alone.0.store(SEVERAL, Ordering::Relaxed);
            }
        }
    }

    /// Shows `take` up to `most` steps of up to a time, in order, and takes them. The time was read from the clock before. False if some
    /// are left: there are more, a thread was interrupted when it added one, or they are being taken.
    pub fn take(&self, until: u64, most: usize, mut take: impl FnMut(&S)) -> bool {
        let taking = &self.taker.0.taking;
        if taking.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        self.taker.0.until.store(until, Ordering::Relaxed);
        // SAFETY: it is this thread that is taking.
        let all = unsafe { self.take_in_order(until, most, &mut take) };
        taking.store(0, Ordering::Release);
        all
    }

    /// # Safety
    ///
    /// No other thread takes steps.
    unsafe fn take_in_order(&self, until: u64, most: usize, take: &mut impl FnMut(&S)) -> bool {
        let until = Time::new(until, true);
        // The time of the next step of a queue; `None` if its thread was interrupted.
        let next_of = |queue: &Queue<S, N>| {
            // SAFETY: the caller's promise, and the reference is gone behind this.
            match unsafe { queue.next() } {
                Next::Step(step) => Some(step.time()).map(|time| if time <= until { time } else { Time::NEVER }),
                Next::None => Some(Time::NEVER),
                Next::Interrupted => None,
            }
        };
        let used = self.used.0.load(Ordering::Relaxed);
        let mut times = [Time::NEVER; Q];
        for number in bits(used) {
            let (Some(time), Some(queue)) = (times.get_mut(number), self.queues.get(number)) else { break };
            let Some(next) = next_of(queue) else { return false };
            *time = next;
        }
        for _ in 0..most {
            let first = bits(used).filter_map(|number| times.get(number).map(|time| (*time, number))).min();
            let Some((_, number)) = first.filter(|(time, _)| *time != Time::NEVER) else { return true };
            let (Some(time), Some(queue)) = (times.get_mut(number), self.queues.get(number)) else { break };
            // SAFETY: as above.
            if let Next::Step(step) = unsafe { queue.next() } {
                take(step);
                queue.pass();
            }
            let Some(next) = next_of(queue) else { return false };
            *time = next;
        }
        false
    }

    /// Up to which time steps were taken last; 0 if none were.
    #[inline]
    pub fn taken_until(&self) -> u64 {
        self.taker.0.until.load(Ordering::Relaxed)
    }

    /// Whether all steps that were added have been taken.
    pub fn is_empty(&self) -> bool {
        self.queues_in_use().all(Queue::is_empty)
    }

    fn queues_in_use(&self) -> impl Iterator<Item = &Queue<S, N>> {
        bits(self.used.0.load(Ordering::Relaxed)).filter_map(|number| self.queues.get(number))
    }

    /// Forgets all steps, in a process that has no other thread.
    pub fn clear(&self) {
        self.queues_in_use().for_each(Queue::clear);
        self.used.0.store(0, Ordering::Relaxed);
        self.taker.0.taking.store(0, Ordering::Relaxed);
        self.taker.0.until.store(0, Ordering::Relaxed);
        self.alone.0.store(0, Ordering::Relaxed);
    }
}

/// The positions of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a thread, and a time in nanoseconds. What is even begins.
    type Step = (u32, u64);

    impl Timed for Step {
        fn time(&self) -> Time {
            Time::new(self.1 / 2, self.1.is_multiple_of(2))
        }
    }

    fn taken<const Q: usize, const N: usize>(backlog: &Backlog<Step, Q, N>, until: u64) -> Vec<u64> {
        let mut all = Vec::new();
        assert!(backlog.take(until, usize::MAX, |step| all.push(step.1)));
        all
    }

    #[test]
    fn steps_of_a_thread_are_taken_in_the_order_in_which_they_were_added() {
        let backlog = Backlog::<Step, 2, 4>::empty();
        for lap in 0..5 {
            for step in 0..4 {
                assert_eq!(
                    backlog.add(7, (7, lap * 10 + step)),
                    Ok(Added { waiting: step + 1, has_ended_alone: (lap, step) == (0, 0) })
                );
            }
            assert_eq!(backlog.add(7, (7, 99)), Err(Full));
            assert_eq!(taken(&backlog, 100), [0, 1, 2, 3].map(|step| lap * 10 + step));
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn steps_of_all_threads_are_taken_in_the_order_of_their_times() {
        let backlog = Backlog::<Step, 4, 4>::empty();
        for (thread, step) in [(1, 20), (2, 10), (1, 41), (3, 40), (2, 30), (3, 50), (6, 52)] {
            backlog.add(thread, (thread, step)).unwrap();
        }
        assert!(!backlog.take(100, 2, |_| {}), "there are more than two");
        assert_eq!(taken(&backlog, 20), [30, 41, 40], "what ends goes before what begins at the same time");
        assert_eq!(backlog.taken_until(), 20);
        assert!(!backlog.is_empty());
        assert_eq!(taken(&backlog, 100), [50, 52]);
        assert!(backlog.is_empty());
    }

    #[test]
    fn a_thread_is_alone_until_another_one_adds_a_step() {
        let backlog = Backlog::<Step, 2, 4>::empty();
        assert!(backlog.is_alone(1) && backlog.is_alone(1) && !backlog.is_alone(2));
        backlog.add(2, (2, 1)).unwrap();
        assert!(!backlog.is_alone(1) && !backlog.is_alone(2));
        backlog.leave_alone(2);
        assert!(!backlog.is_alone(2), "its step was not taken");
        assert_eq!(taken(&backlog, 1), [1]);
        backlog.leave_alone(2);
        assert!(backlog.is_alone(2) && !backlog.is_alone(1));
    }

    #[test]
    fn nothing_is_taken_past_a_step_that_was_interrupted() {
        let backlog = Backlog::<Step, 2, 4>::empty();
        backlog.add(1, (1, 10)).unwrap();
        backlog.add(2, (2, 8)).unwrap();
        // Thread 1 has a place and has not written its step yet.
        backlog.queues[1].places[0].turns.store(0, Ordering::Relaxed);
        assert_eq!(taken(&backlog, 100), [8], "what a thread is adding came after nothing");
        backlog.add(1, (1, 20)).unwrap();
        backlog.add(2, (2, 22)).unwrap();
        assert!(!backlog.take(100, usize::MAX, |_| panic!("it may have come after the step of thread 1")));
        backlog.queues[1].places[0].turns.store(1, Ordering::Relaxed);
        assert_eq!(taken(&backlog, 100), [10, 20, 22]);
    }

    #[test]
    fn a_place_that_was_left_in_a_wrong_state_holds_up_nobody() {
        let backlog = Backlog::<Step, 1, 2>::empty();
        backlog.queues[0].places[0].turns.store(2, Ordering::Relaxed);
        assert_eq!(backlog.add(1, (1, 1)), Err(Full));
    }

    #[test]
    fn a_cleared_backlog_takes_steps_again() {
        let backlog = Backlog::<Step, 2, 2>::empty();
        backlog.add(1, (1, 1)).unwrap();
        backlog.add(2, (2, 2)).unwrap();
        backlog.clear();
        assert!(backlog.is_empty() && backlog.is_alone(3));
        backlog.add(1, (1, 3)).unwrap();
        assert_eq!(taken(&backlog, 100), [3]);
    }

    #[test]
    fn no_step_of_many_threads_is_lost_and_none_comes_before_its_cause() {
        const STEPS: u64 = 20_000;
        static BACKLOG: Backlog<Step, 2, 8> = Backlog::empty();
        static CLOCK: AtomicU64 = AtomicU64::new(1);
        let now = || CLOCK.fetch_add(1, Ordering::SeqCst);
        let mut all: Vec<Step> = Vec::new();
        // When steps had been added, by their times.
        let mut ends = std::collections::HashMap::new();
        std::thread::scope(|scope| {
            // Two of the three use the same queue.
            let threads = [1, 2, 3].map(|thread| {
                scope.spawn(move || {
                    let add = |_| {
                        let time = now();
                        while BACKLOG.add(thread, (thread, time * 2)).is_err() {
                            std::thread::yield_now();
                        }
                        (time, now())
                    };
                    (0..STEPS).map(add).collect::<Vec<_>>()
                })
            });
            while (all.len() as u64) < 3 * STEPS {
                BACKLOG.take(now(), 100, |step| all.push(*step));
            }
            ends.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        });
        for thread in 1..4 {
            let own: Vec<u64> = all.iter().filter(|step| step.0 == thread).map(|step| step.1).collect();
            assert!(own.len() as u64 == STEPS && own.is_sorted());
        }
        let mut earliest_end = u64::MAX;
        for (_, time) in all.iter().rev() {
            assert!(time / 2 < earliest_end, "it began after one that was taken later had ended");
            earliest_end = earliest_end.min(ends[&(time / 2)]);
        }
    }
}
