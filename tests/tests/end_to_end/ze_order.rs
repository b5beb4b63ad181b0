//! What comes before what in lists and queues of Level Zero: two commands of two processes that nothing orders are
//! found, on a fast device and without a delay, and nothing is said of others.

use std::fs;

use urscope_tests::runtime::level_zero_loader;
use urscope_tests::{Adapter, Release, TestRun, apps, artefacts, on_all_processors, record_fields};

const PROGRAM: &str = "ze_order";

/// Programs that are correct.
const RIGHT: [&str; 17] = [
    "right_list",
    "right_list_out_of_order",
    "right_blocking",
    "right_event",
    "right_event_behind",
    "right_barrier",
    "right_barrier_without_event",
    "right_event_elsewhere",
    "right_executed",
    "right_fence",
    "right_event_in_list",
    "right_list_behind_event",
    "right_executed_again",
    "right_list_of_before",
    "right_reset",
    "right_shared_event",
    "right_list_made_before",
];

/// Correct ones whose second command waits for an event that a host signals: they are only counted.
const RIGHT_BY_HOST: [&str; 5] =
    ["right_gate", "right_gate_again", "right_gate_reset_by_list", "right_gate_made_anew", "right_gate_of_list"];

/// Programs in which the process that writes says so too early, or the other one reads too early.
const WRONG: [&str; 10] = [
    "told_first",
    "other_list",
    "other_event",
    "event_behind",
    "barrier_before",
    "executed_and_told",
    "executed_again_and_told",
    "fence_of_before",
    "never_waited",
    "enqueued_before",
];

fn is_judged(case: &str, run: TestRun) {
    let outcome = run.arg(case).run();
    let report = outcome.report();
    let expected = if WRONG.contains(&case) { vec!["error race"] } else { vec![] };
    assert_eq!(report.violations(), expected, "{case}: {}", outcome.stderr);
    assert_eq!(outcome.code, i32::from(WRONG.contains(&case)), "{case}: {}", outcome.stderr);
    let counted = usize::from(RIGHT_BY_HOST.contains(&case));
    assert_eq!(report.unseen().len(), counted, "{case}: {:?}", report.unseen());
    outcome.traces().iter().for_each(record_fields::assert_as_declared);
}

#[test]
fn commands_that_nothing_orders_are_found_and_no_others() {
    on_all_processors(RIGHT.into_iter().chain(RIGHT_BY_HOST).chain(WRONG), |case| {
        is_judged(case, TestRun::new(PROGRAM, Release::R2026_2, Adapter::V1));
    });
}

/// A loader between the program and the device, with its tracing layer, and the other form of the trace.
#[test]
fn a_loader_hides_no_order() {
    let (libraries, _) = artefacts::libraries();
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libze_soft_driver.so");
    fs::copy(libraries.join("libze_loader.so"), &driver).unwrap();
    on_all_processors(
        ["right_gate_again", "right_fence", "told_first", "executed_again_and_told"].into_iter(),
        |case| {
            let run = TestRun::of_program("/usr/bin/env")
                .arg(format!("LD_LIBRARY_PATH={}", level_zero_loader().display()))
                .arg(format!("ZE_ENABLE_ALT_DRIVERS={}", driver.display()))
                .arg("ZE_ENABLE_TRACING_LAYER=1")
                .arg("URSCOPE_FORMAT=chrome")
                .arg(apps::executable(PROGRAM, Release::R2026_2));
            is_judged(case, run);
        },
    );
}
