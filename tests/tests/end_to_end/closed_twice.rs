//! A fault of the runtime: where the driver exports the same descriptor each time, the second put of the v2 adapter closes a
//! descriptor that may belong to the program.

use urscope_tests::{Adapter, Outcome, Release, TestRun, run};

const CLOSED_TWICE: &str = "error descriptor-closed-twice";

/// What the tests of this module find, as "severity rule".
pub(crate) const EXPECTED: [&str; 1] = [CLOSED_TWICE];

const OPEN: &str = "the program's own descriptor is open\n";
const CLOSED: &str = "the program's own descriptor is closed\n";

fn test_run(descriptors: &str) -> TestRun {
    TestRun::of("object_mistakes physical_puts_of_one_descriptor", Release::R2026_2, Adapter::V2)
        .env("ZE_SOFT_EXPORT_FD", descriptors)
}

fn violations(outcome: &Outcome, printed: &str) -> Vec<String> {
    assert_eq!(outcome.stdout, printed, "{}", outcome.stderr);
    outcome.report().violations()
}

#[test]
fn a_driver_that_exports_a_new_descriptor_each_time_does_no_harm() {
    assert!(violations(&test_run("each").run(), OPEN).is_empty());
}

#[test]
fn a_put_that_closes_another_descriptor_is_found_and_prevented() {
    assert_eq!(test_run("one").option("--no-shim").run().stdout, CLOSED, "the fault is the runtime's own");
    let outcome = test_run("one").run();
    assert_eq!(violations(&outcome, CLOSED), [CLOSED_TWICE]);
    let report = outcome.report();
    let [finding] = report.findings() else { panic!("{report:#?}") };
    assert_eq!(finding["function"], "urIPCPutPhysMemHandleExp", "{finding:#?}");
    assert_eq!(finding["other"]["function"], "urIPCPutPhysMemHandleExp", "{finding:#?}");
    if run::is_validated() {
        let refusing = test_run("one").env("URSCOPE_ON_ERROR", "refuse").run();
        assert_eq!(refusing.stdout, OPEN, "{}", refusing.stderr);
    }
}

#[test]
fn our_backend_closes_only_its_own_descriptors() {
    assert!(violations(&test_run("one").env("URSCOPE_BACKEND", "level_zero").run(), OPEN).is_empty());
}
