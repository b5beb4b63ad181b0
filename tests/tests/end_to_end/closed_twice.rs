//! A fault of the runtime: where the driver exports the same descriptor each time, the second put of the v2 adapter
//! closes a descriptor that may belong to the program.

use urscope_tests::{Adapter, Outcome, Release, TestRun, run};

const CLOSED_TWICE: &str = "error descriptor-closed-twice";

/// What the tests of this module find, as "severity rule".
pub(crate) const EXPECTED: [&str; 1] = [CLOSED_TWICE];

/// What becomes of a file that the program opens between the two puts.
const OPEN: &str = "kept";
const CLOSED: &str = "closed";

fn test_run(descriptors: &str) -> TestRun {
    TestRun::new("ur_physical only put-of-both-and-an-unrelated-file", Release::R2026_2, Adapter::V2)
        .env("ZE_SOFT_EXPORT_FD", descriptors)
}

/// The last word that the program prints.
fn file(outcome: &Outcome) -> Option<&str> {
    outcome.stdout.split_whitespace().next_back()
}

fn violations(outcome: &Outcome, file: &str) -> Vec<String> {
    assert_eq!(self::file(outcome), Some(file), "{}", outcome.stderr);
    outcome.report().violations()
}

#[test]
fn a_driver_that_exports_a_new_descriptor_each_time_does_no_harm() {
    assert!(violations(&test_run("each").run(), OPEN).is_empty());
}

#[test]
fn a_put_that_closes_another_descriptor_is_found_and_prevented() {
    let bare = test_run("one").option("--no-shim").run();
    assert_eq!(file(&bare), Some(CLOSED), "the fault is the runtime's own");
    let outcome = test_run("one").run();
    assert_eq!(violations(&outcome, CLOSED), [CLOSED_TWICE]);
    let report = outcome.report();
    let [finding] = report.findings() else { panic!("{report:#?}") };
    assert_eq!(finding["function"], "urIPCPutPhysMemHandleExp", "{finding:#?}");
    assert_eq!(finding["other"]["function"], "urIPCPutPhysMemHandleExp", "{finding:#?}");
    if run::is_validated() {
        let refusing = test_run("one").env("URSCOPE_ON_ERROR", "refuse").run();
        assert_eq!(file(&refusing), Some(OPEN), "{}", refusing.stderr);
    }
}

#[test]
fn our_backend_closes_only_its_own_descriptors() {
    assert!(violations(&test_run("one").env("URSCOPE_BACKEND", "level_zero").run(), OPEN).is_empty());
}
