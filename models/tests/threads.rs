//! Every order of threads: the lock, what is left to its holder, and what threads count without sharing.

use loom::thread::spawn;
use urscope_models::threads::{
    backlog::{Added, Backlog, Time, Timed},
    explore,
    fork_reset::ForkReset,
    lock::{Held, Lock},
    sync::{AtomicU64, Ordering},
    thread::{called, count_call, leave_counts, next_call},
};
use urscope_schema::api::Function;

const FUNCTION: Function = Function::urIPCGetMemHandleExp;

/// Two steps, in which another thread can come in between, or not see the store.
fn add_one(value: &AtomicU64) {
    value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[test]
fn a_lock_is_held_by_one_thread_and_shows_what_others_did() {
    explore(|| {
        static LOCK: Lock<AtomicU64> = Lock::new(AtomicU64::new(0));
        // Loom wants its objects to be made before the threads.
        add_one(&LOCK.get().expect("it is free"));
        let threads = [(); 2].map(|()| spawn(|| add_one(&LOCK.get().expect("no thread holds it for long"))));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(LOCK.get().expect("it is free").load(Ordering::Relaxed), 3);
    });
}

/// A number, and when it was added.
#[derive(Clone, Copy)]
struct Step(u64, u64);

impl Timed for Step {
    fn time(&self) -> Time {
        Time::new(self.1, false)
    }
}

/// The validation layer: the steps that were taken, the latest last, in base 16, and those that are left.
struct Layer {
    lock: Lock<AtomicU64>,
    left: Backlog<Step, 2, 2>,
    clock: AtomicU64,
}

impl Layer {
    const fn new() -> Self {
        Self { lock: Lock::new(AtomicU64::new(0)), left: Backlog::empty(), clock: AtomicU64::new(1) }
    }

    /// Begins an execution. Loom wants its objects to be made before the threads.
    fn begin(&self) {
        self.lock.get().expect("it is free").store(0, Ordering::Relaxed);
        for thread in [1, 1, 2, 2] {
            self.left.add(thread, Step(0, self.now())).unwrap();
        }
        assert!(self.left.take(self.now(), usize::MAX, |_| {}));
    }

    /// Whatever a thread did before it looked at the clock is seen by one that finds a later time.
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::AcqRel)
    }

    /// Takes a step, if its thread is alone.
    fn take_alone(&self, thread: u32, step: u64) -> bool {
        let Some(state) = self.left.is_alone(thread).then(|| self.lock.try_get()).flatten() else { return false };
        let is_alone = self.left.is_alone(thread);
        if is_alone {
            taken(&state, step);
        }
        drop(state);
        if is_alone && !self.left.is_alone(thread) {
            self.for_others(self.lock.get_or_notify());
        }
        is_alone
    }

    fn add(&self, thread: u32, step: u64) -> Added {
        self.left.add(thread, Step(step, self.now())).expect("there are not so many")
    }

    /// Has a step taken, by its own thread if that is alone.
    fn follow(&self, thread: u32, step: u64) {
        if !self.take_alone(thread, step) {
            // The layer waits for a while only, by the system's clock: here that would end the wait at any time, and the model has no other.
            let waited_for = if self.add(thread, step).has_ended_alone { self.lock.get() } else { None };
            self.for_others(waited_for.or_else(|| self.lock.get_or_notify()));
        }
    }

    fn for_others(&self, mut held: Option<Held<'_, AtomicU64>>) {
        while let Some(state) = held {
            self.left.take(self.now(), usize::MAX, |step| taken(&state, step.0));
            held = state.give_back();
        }
    }
}

fn taken(state: &AtomicU64, step: u64) {
    state.store(state.load(Ordering::Relaxed) << 4 | step, Ordering::Relaxed);
}

#[test]
fn a_step_is_taken_once_and_none_stays_behind() {
    static LAYER: Layer = Layer::new();
    explore(|| {
        LAYER.begin();
        let other = spawn(|| LAYER.follow(1, 1));
        LAYER.follow(2, 2);
        other.join().unwrap();
        assert!(LAYER.left.is_empty(), "a step stayed behind");
        let taken = LAYER.lock.get().expect("it is free").load(Ordering::Relaxed);
        assert!([0x12, 0x21].contains(&taken), "the steps {taken:x} were taken");
    });
}

#[test]
fn a_step_beside_one_of_a_thread_that_is_alone_does_not_stay_behind() {
    static LAYER: Layer = Layer::new();
    explore(|| {
        LAYER.begin();
        LAYER.left.leave_alone(2);
        assert!(LAYER.left.is_alone(2));
        let other = spawn(|| LAYER.follow(1, 1));
        LAYER.follow(2, 2);
        other.join().unwrap();
        assert!(LAYER.left.is_empty(), "a step stayed behind");
        let taken = LAYER.lock.get().expect("it is free").load(Ordering::Relaxed);
        assert!([0x12, 0x21].contains(&taken), "the steps {taken:x} were taken");
    });
}

#[test]
fn a_thread_that_is_let_alone_takes_no_step_before_what_came_before_it() {
    static LAYER: Layer = Layer::new();
    static MADE: AtomicU64 = AtomicU64::new(0);
    explore(|| {
        LAYER.begin();
        MADE.store(0, Ordering::Relaxed);
        LAYER.left.leave_alone(2);
        assert!(LAYER.left.is_alone(2));
        let other = spawn(|| {
            // It leaves a step, and does not have it taken.
            LAYER.add(1, 1);
            MADE.store(1, Ordering::Release);
        });
        let held = LAYER.lock.get().expect("it is free");
        LAYER.left.take(LAYER.now(), usize::MAX, |step| taken(&held, step.0));
        LAYER.left.leave_alone(2);
        drop(held);
        let came_before = MADE.load(Ordering::Acquire) == 1;
        if came_before {
            LAYER.follow(2, 2);
        }
        other.join().unwrap();
        LAYER.for_others(LAYER.lock.get());
        let taken = LAYER.lock.get().expect("it is free").load(Ordering::Relaxed);
        assert_eq!(taken, if came_before { 0x12 } else { 1 });
    });
}

#[test]
fn a_thread_that_another_one_lets_alone_takes_its_steps_in_order() {
    static LAYER: Layer = Layer::new();
    explore(|| {
        LAYER.begin();
        let held = LAYER.lock.get().expect("it is free");
        let other = spawn(|| {
            LAYER.add(2, 2);
            if !LAYER.take_alone(2, 3) {
                LAYER.add(2, 3);
            }
        });
        LAYER.left.take(LAYER.now(), usize::MAX, |step| taken(&held, step.0));
        LAYER.left.leave_alone(2);
        drop(held);
        other.join().unwrap();
        LAYER.for_others(LAYER.lock.get());
        let taken = LAYER.lock.get().expect("it is free").load(Ordering::Relaxed);
        assert_eq!(taken, 0x23);
    });
}

#[test]
fn a_step_is_taken_after_what_came_before_it_in_another_queue() {
    static LAYER: Layer = Layer::new();
    explore(|| {
        LAYER.begin();
        let other = spawn(|| {
            // One thread in place of two, of which the second waits for the first.
            LAYER.add(2, 2);
            LAYER.add(1, 1);
        });
        // The queue of 2 is looked at before that of 1.
        LAYER.for_others(LAYER.lock.get());
        other.join().unwrap();
        LAYER.for_others(LAYER.lock.get());
        let taken = LAYER.lock.get().expect("it is free").load(Ordering::Relaxed);
        assert_eq!(taken, 0x21);
    });
}

#[test]
fn a_value_is_made_once_for_all_threads() {
    explore(|| {
        static VALUE: ForkReset<AtomicU64> = ForkReset::new(|| {
            let value = AtomicU64::new(0);
            value.store(7, Ordering::Relaxed);
            value
        });
        assert!(VALUE.made().is_none());
        let threads = [(); 2].map(|()| {
            spawn(|| {
                let value = VALUE.get();
                assert_eq!(value.load(Ordering::Relaxed), 7);
                std::ptr::from_ref(value) as usize
            })
        });
        let [one, other] = threads.map(|thread| thread.join().unwrap());
        assert_eq!(one, other);
    });
}

#[test]
fn no_call_is_lost_when_a_thread_goes_on_with_the_counts_of_another() {
    explore(|| {
        let count = || {
            count_call(FUNCTION);
            leave_counts();
        };
        assert_eq!(called(FUNCTION), 0);
        let threads = [(); 2].map(|()| spawn(count));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(called(FUNCTION), 2);
    });
}

#[test]
fn no_two_calls_have_the_same_number() {
    explore(|| {
        assert_eq!(next_call(), 1);
        let threads = [(); 2].map(|()| spawn(|| [next_call(), next_call()]));
        let [[one, two], [three, four]] = threads.map(|thread| thread.join().unwrap());
        assert!(one < two && three < four);
        assert!(![three, four].contains(&one) && ![three, four].contains(&two));
    });
}
