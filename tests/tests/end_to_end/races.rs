//! Commands of two processes that the device executes at the same time on memory which they share.

use std::path::Path;
use std::thread;

use serde_json::Value;
use urscope_tests::{Adapter, Release, TestRun, perfetto};

use crate::on_both_adapters;

/// What a program reads and writes at the same time, and what the finding says of it; `None` where nothing is found.
const CASES: [(&str, Option<&str>); 8] = [
    ("ur_sharing race overwritten", Some("16 bytes in common")),
    ("ur_sharing race waited", None),
    ("ur_sharing race apart", None),
    ("ur_sharing race one_byte", Some("1 byte in common")),
    ("ur_sharing race rows", None),
    ("ur_sharing race rows_that_meet", Some("64 bytes in common")),
    ("sharing halo forgotten", Some("64 bytes in common")),
    ("sharing halo", None),
];

fn run(program: &str, adapter: Adapter) -> TestRun {
    let mut words = program.splitn(3, ' ');
    let name = words.by_ref().take(2).collect::<Vec<_>>().join(" ");
    words.fold(TestRun::new(&name, Release::R2026_2, adapter), TestRun::arg)
}

/// Runs all cases at the same time: most of it, they wait for the device.
fn are_judged(adapter: Adapter, change: impl Fn(TestRun) -> TestRun + Sync) {
    let judge = |(program, expected): (&str, Option<&str>)| {
        let outcome = change(run(program, adapter)).run();
        let report = outcome.report();
        let Some(expected) = expected else {
            assert_eq!((report.violations(), report.verdict()), (vec![], "clean"), "{program}: {report:#?}");
            return;
        };
        assert_eq!(report.violations(), ["error race"], "{program}: {}", outcome.stderr);
        let finding = report.finding("race");
        assert!(finding["message"].as_str().unwrap().contains(expected), "{finding:#?}");
        for side in [&finding["process"], &finding["other"]] {
            assert!(side["stack"].as_array().is_some_and(|stack| !stack.is_empty()), "{finding:#?}");
        }
    };
    thread::scope(|scope| CASES.iter().for_each(|case| drop(scope.spawn(|| judge(*case)))));
}

on_both_adapters! {
    fn what_overlaps_in_time_and_in_bytes_is_found_and_nothing_else(adapter) {
        are_judged(adapter, |run| run);
    }
}

#[test]
fn our_backend_is_judged_alike() {
    are_judged(Adapter::V2, |run| run.env("URSCOPE_BACKEND", "level_zero"));
}

#[test]
fn both_forms_of_the_trace_are_judged_alike() {
    are_judged(Adapter::V2, |run| run.env("URSCOPE_FORMAT", "chrome"));
}

/// The accesses, with the names of their threads.
const BARS: &str = "select slice.name as name, thread.name as thread from slice join thread_track on track_id = thread_track.id \
    join thread using (utid) where category = 'urscope' and dur > 0 order by ts";

#[test]
fn perfetto_draws_the_commands_on_the_threads_of_the_device() {
    for form in ["chrome", "binary"] {
        let outcome = run("ur_sharing race overwritten", Adapter::V2).env("URSCOPE_FORMAT", form).run();
        let drawn = |file: &Path| {
            let opinion = perfetto::opinion(file, &[BARS]);
            opinion.assert_ok();
            let bar = |row: &Value| format!("{} on {}", row["name"].as_str().unwrap(), row["thread"].as_str().unwrap());
            opinion.rows(0).iter().map(bar).collect::<Vec<_>>()
        };
        let mut each: Vec<_> = outcome.trace_files().iter().flat_map(|file| drawn(file)).collect();
        each.sort();
        assert_eq!(each, ["read on ze_soft", "write on ze_soft"], "{form}");
        assert_eq!(drawn(&outcome.merged_trace()), ["read on ze_soft", "write on ze_soft"], "{form}");
    }
}

#[test]
fn the_variable_leaves_races_out() {
    let outcome = run("ur_sharing race overwritten", Adapter::V2).env("URSCOPE_RACES", "off").run();
    assert_eq!((outcome.report().violations(), outcome.report().verdict()), (vec![], "clean"));
}
