//! The lock and the counters of threads, in every order of threads.

use loom::thread::spawn;
use urscope_models::threads::sync::{AtomicU64, Ordering};
use urscope_models::threads::thread::{called, count_call, leave_counts, next_call};
use urscope_models::threads::{explore, fork_reset::ForkReset, lock::Lock};
use urscope_schema::api::Function;

const FUNCTION: Function = Function::urIPCGetMemHandleExp;

/// Adds in two steps. Another thread can run in between, or not see the store.
fn add_one(value: &AtomicU64) {
    value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[test]
fn a_lock_is_held_by_one_thread_and_shows_what_others_did() {
    explore(|| {
        static LOCK: Lock<AtomicU64> = Lock::new(AtomicU64::new(0));
        // Loom requires its objects to exist before the threads.
        add_one(&LOCK.get().expect("it is free"));
        let threads = [(); 2].map(|()| spawn(|| add_one(&LOCK.get().expect("no thread holds it for long"))));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(LOCK.get().expect("it is free").load(Ordering::Relaxed), 3);
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
