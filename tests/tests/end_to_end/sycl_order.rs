//! What comes before what in queues of SYCL: two commands of two processes that nothing orders are found, on a fast
//! device and without a delay, and nothing is said of others.

use urscope_tests::{Adapter, Release, TestRun, on_all_processors, record_fields};

use crate::on_both_adapters;

/// Programs that are correct.
const RIGHT: [&str; 15] = [
    "right_queue",
    "right_queue_out_of_order",
    "right_event",
    "right_event_behind",
    "right_dependent",
    "right_dependent_in_queue",
    "right_chain",
    "right_behind_barrier",
    "right_barrier",
    "right_barrier_elsewhere",
    "right_polled",
    "right_empty",
    "right_two_events",
    "right_prefetch",
    "right_overwritten",
];

/// Programs in which the process that writes, or reads, says so too early.
const WRONG: [&str; 6] =
    ["told_first", "other_queue", "other_event", "event_behind", "barrier_before", "overwritten_early"];

fn is_judged(case: &str, run: TestRun) {
    let outcome = run.arg(case).run();
    let report = outcome.report();
    if RIGHT.contains(&case) {
        assert_eq!((report.violations(), report.verdict()), (vec![], "clean"), "{case}: {}", outcome.stderr);
    } else {
        assert_eq!(report.violations(), ["error race"], "{case}: {}", outcome.stderr);
        let message = report.finding("race")["message"].as_str().unwrap();
        // Some commands meet.
        assert!(["nothing orders that and", "both were under way"].iter().any(|it| message.contains(it)), "{message}");
    }
    outcome.traces().iter().for_each(record_fields::assert_as_declared);
}

on_both_adapters! {
    fn commands_that_nothing_orders_are_found_and_no_others(adapter) {
        on_all_processors(RIGHT.into_iter().chain(WRONG), |case| {
            is_judged(case, TestRun::new("sycl_order", Release::R2026_2, adapter));
        });
    }
}

on_both_adapters! {
    fn a_kernel_that_nothing_orders_is_counted(adapter) {
        for (case, expected) in [("right_kernel", 0), ("kernel_told_first", 1)] {
            let outcome = TestRun::new("sycl_order", Release::R2026_2, adapter).with_engine().arg(case).run();
            let report = outcome.report();
            let unseen = report.unseen();
            assert_eq!((report.verdict(), unseen.len()), ("clean", expected), "{case}: {}", outcome.stderr);
            let begin = "1 pair of a kernel and a command of another process at its pointer not judged as a race: ";
            let has_lines = |it: &str| it.contains(" of write, sycl_order.cpp:") && it.contains(" of read, ipc_app.hpp:");
            assert!(unseen.iter().all(|it| it.starts_with(begin) && has_lines(it)), "{unseen:?}");
        }
    }
}

on_both_adapters! {
    /// SYCL's queues are out of order unless the program asks otherwise.
    fn a_wait_for_a_kernel_is_not_for_the_commands_in_front_of_it(adapter) {
        for (case, expected) in [("right_behind_kernel", &[][..]), ("kernel_behind", &["error race"])] {
            let outcome = TestRun::new("sycl_order", Release::R2026_2, adapter).with_engine().arg(case).run();
            assert_eq!(outcome.report().violations(), expected, "{case}: {}", outcome.stderr);
        }
    }
}

/// A release whose tables have another order, urscope's own backend, calls that are only shown, and the other form.
#[test]
fn every_way_to_the_calls_shows_the_order() {
    let of = |release| TestRun::new("sycl_order", release, Adapter::V2);
    on_all_processors(["right_chain", "right_behind_barrier", "told_first", "event_behind"].into_iter(), |case| {
        is_judged(case, of(Release::R2026_0));
        is_judged(case, of(Release::R2026_2).env("URSCOPE_BACKEND", "level_zero"));
        is_judged(case, of(Release::R2026_2).env("URSCOPE_ENTRY", "xpti"));
        is_judged(case, of(Release::R2026_2).env("URSCOPE_FORMAT", "chrome"));
    });
}
