//! A fault of the runtime: the v1 adapter returns success from a get or an open that failed, without setting the
//! result.

use urscope_tests::{Adapter, Outcome, Release, TestRun};

const MISSING_RESULT: &str = "error success-without-result";

/// What the tests of this module find, as "severity rule".
pub(crate) const EXPECTED: [&str; 1] = [MISSING_RESULT];

/// A failing get and a failing open.
const CALLS: [&str; 2] = ["get", "open"];

fn run(call: &str, adapter: Adapter, on_error: &str) -> Outcome {
    let test_run = |mode| TestRun::new(mode, Release::R2026_2, adapter).env("URSCOPE_ON_ERROR", on_error);
    match call {
        "get" => test_run("ur_memory only get-when-invalid-argument")
            .env("ZE_SOFT_FAIL", "zeMemGetIpcHandle:0x78000004")
            .run(),
        _ => test_run("ur_sharing missing_open").run(),
    }
}

/// What the program prints of a result, and of its variables.
fn printed(call: &str, result: u32) -> String {
    let case = if call == "get" { "get-when-invalid-argument" } else { call };
    format!("{case}: {result} untouched\n")
}

/// What else is found: the killed producer could not put its handle.
fn besides(call: &str) -> Vec<&'static str> {
    if call == "open" { vec!["note leaked-handle"] } else { vec![] }
}

/// What is found besides where the call returns an error, which nothing else explains.
fn besides_an_error(call: &str) -> Vec<&'static str> {
    let refused = if call == "open" { "note refused-open" } else { "note refused-call" };
    besides(call).into_iter().chain([refused]).collect()
}

fn reported(outcome: &Outcome) -> usize {
    outcome.stderr.lines().filter(|line| line.starts_with("urscope: error: success-without-result: ")).count()
}

#[test]
fn a_success_without_its_result_is_found_live_and_by_the_judge() {
    for call in CALLS {
        let outcome = run(call, Adapter::V1, "report");
        assert_eq!(outcome.stdout, printed(call, 0), "{}", outcome.stderr);
        assert_eq!(reported(&outcome), 1, "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), [vec![MISSING_RESULT], besides(call)].concat());
        let live = outcome
            .traces()
            .iter()
            .flat_map(|trace| &trace.records)
            .filter(|record| record["name"] == "finding")
            .count();
        assert_eq!(live, 1, "an instant in the trace");
    }
}

#[test]
fn with_refusal_it_becomes_the_error_of_the_other_adapter() {
    for call in CALLS {
        let [refused, v2] = [run(call, Adapter::V1, "refuse"), run(call, Adapter::V2, "report")];
        assert_eq!(refused.stdout, printed(call, 45), "{}", refused.stderr);
        assert_eq!((&v2.stdout, reported(&v2)), (&refused.stdout, 0), "{}", v2.stderr);
        assert_eq!(v2.report().violations(), besides_an_error(call));
        // The trace records what the application got, so the judge sees an error and no violation.
        assert_eq!(reported(&refused), 1, "{}", refused.stderr);
        assert_eq!(refused.report().violations(), besides_an_error(call));
    }
}
