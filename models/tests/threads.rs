//! Every order of threads: the lock, what is left to its holder, and what threads count without sharing.

use loom::thread::spawn;
use urscope_models::threads::{
    backlog::Backlog,
    explore,
    fork_reset::ForkReset,
    lock::Lock,
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

#[test]
fn a_step_is_taken_once_and_none_stays_behind() {
    /// The steps that were taken, the latest last, in base 16.
    static LOCK: Lock<AtomicU64> = Lock::new(AtomicU64::new(0));
    static BACKLOG: Backlog<u64, 4> = Backlog::empty();

    /// As the validation layer does it.
    fn leave(step: u64) {
        BACKLOG.add(step).expect("there are not so many");
        let mut held = LOCK.get_or_notify();
        while let Some(state) = held {
            while BACKLOG.take(|step| state.store(state.load(Ordering::Relaxed) << 4 | step, Ordering::Relaxed)) {}
            held = state.give_back();
        }
    }

    explore(|| {
        // As above.
        LOCK.get().expect("it is free").store(0, Ordering::Relaxed);
        for step in 0..4 {
            BACKLOG.add(step).unwrap();
            assert!(BACKLOG.take(|taken| assert_eq!(*taken, step)));
        }
        let other = spawn(|| leave(1));
        leave(2);
        other.join().unwrap();
        assert!(BACKLOG.is_empty(), "a step stayed behind");
        let taken = LOCK.get().expect("it is free").load(Ordering::Relaxed);
        assert!([0x12, 0x21].contains(&taken), "the steps {taken:x} were taken");
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
