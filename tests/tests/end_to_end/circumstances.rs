//! What is wrong around the calls: opens that were refused, devices that had said no, and what was done over and over.

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun};

use Adapter::{V1, V2};

fn run(app: &str, adapter: Adapter, argument: Option<&str>) -> Outcome {
    let test_run = TestRun::of(app, Release::R2026_2, adapter);
    argument.into_iter().fold(test_run, TestRun::arg).run()
}

fn says(outcome: &Outcome, rule: &str, text: &str) {
    let report = outcome.report();
    let message = report.finding(rule)["message"].as_str().expect("a finding has words");
    assert!(message.contains(text), "{message}");
}

#[test]
fn a_refusal_of_the_kernel_is_told_with_its_cause() {
    for (adapter, answer, besides) in [(V1, "0", Some("error success-without-result")), (V2, "45", None)] {
        let outcome = run("no_permission", adapter, None);
        assert_eq!(outcome.stdout, format!("open answered {answer}, nothing\na byte less answered 4\n"));
        let violations = ["error size-mismatch"].into_iter().chain(besides).chain(["warning permission-denied"]);
        assert_eq!(outcome.report().violations(), violations.collect::<Vec<_>>());
        says(&outcome, "permission-denied", "is not dumpable (PR_SET_DUMPABLE)");
    }
}

#[test]
fn data_that_no_get_gave_are_those_of_nobody() {
    let outcome = run("ur_violations", V2, Some("bytes_of_nobody"));
    assert_eq!(outcome.report().violations(), ["note garbage-handle"], "{}", outcome.stdout);
    // Many a changed bit is not noticed by the adapter.
    let outcome = run("damaged_handle", V2, None);
    let violations = outcome.report().violations();
    for violation in ["note untraced-peer", "error size-mismatch"] {
        assert!(violations.iter().any(|found| found == violation), "{violations:?}");
    }
}

#[test]
fn a_device_that_said_no_is_believed() {
    let outcome = run("ur_violations", V1, Some("memory_that_the_device_cannot_share"));
    assert_eq!(outcome.stdout, "shared though the device says no\n", "{}", outcome.stderr);
    assert_eq!(outcome.report().violations(), ["warning unsupported-device"]);
    let outcome = run("ur_violations", V2, Some("memory_that_the_device_cannot_share"));
    assert_eq!(outcome.stdout, "shared though the device says yes\n", "{}", outcome.stderr);
    assert!(outcome.report().findings().is_empty());
}

#[test]
fn a_device_is_the_one_of_the_context_and_of_the_memory() {
    let violation = |violation: &str, adapter: Adapter| {
        TestRun::of("ur_violations", Release::R2026_2, adapter).env("ZE_SOFT_DEVICES", "2").arg(violation).run()
    };
    for (adapter, answer) in [(V1, "5"), (V2, "2147483646")] {
        let outcome = violation("a_device_that_is_not_the_contexts", adapter);
        assert_eq!(outcome.stdout, format!("open on another device: {answer}\n"), "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), ["error wrong-device"]);
        says(&outcome, "wrong-device", " has only device 0x");
        let outcome = violation("a_device_that_is_not_the_memorys", adapter);
        assert_eq!(outcome.stdout, "open on another device: 0\n", "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), ["note open-in-producer", "note wrong-device"]);
        says(&outcome, "wrong-device", " is on device 0x");
    }
}

#[test]
fn an_event_is_shared_or_timed() {
    let outcome = run("ur_violations", V2, Some("an_event_that_is_shared_and_timed"));
    assert_eq!(outcome.stdout, "an event that is shared and timed: 4\n");
    assert_eq!(outcome.report().violations(), ["error profiled-ipc-event"]);
}

#[test]
fn what_is_got_over_and_over_is_told_once_with_its_cost() {
    for adapter in [V1, V2] {
        let outcome = run("ur_violations", adapter, Some("handle_data_over_and_over"));
        assert_eq!(outcome.report().violations(), ["note churn"], "{}", outcome.stderr);
        says(&outcome, "churn", " 150 times, 149 times after all of it had been put");
    }
}

#[test]
fn a_call_in_which_the_process_stands_still_is_slow() {
    for adapter in [V1, V2] {
        let outcome = run("ur_violations", adapter, Some("a_process_that_is_stopped"));
        assert_eq!(outcome.stdout, "stopped 12 times\n", "{}", outcome.stderr);
        // It is left out where violations are listed, because any machine may stand still.
        let report = outcome.report();
        let is_slow = |finding: &Value| {
            let [severity, rule] = ["severity", "rule"].map(|word| finding[word].as_str().unwrap_or_default());
            format!("{severity} {rule}") == "note slow-call"
        };
        assert!(report.findings().iter().any(is_slow), "{}", outcome.stderr);
    }
}

#[test]
fn descriptors_that_grow_are_the_programs_handles_or_not() {
    let outcome = run("ur_violations", V2, Some("files_over_and_over"));
    assert_eq!(outcome.report().violations(), ["note churn", "note descriptor-growth"], "{}", outcome.stderr);
    says(&outcome, "descriptor-growth", "a cache, the driver or other files hold the rest");
    // The last sample may be taken behind a get, before its put.
    let report = outcome.report();
    let message = report.finding("descriptor-growth")["message"].as_str().expect("a finding has a message");
    assert!(message.contains("only 0 more handles") || message.contains("only 1 more handles"), "{message}");
    let outcome = run("ur_violations", V2, Some("handle_data_that_is_kept"));
    says(&outcome, "descriptor-growth", "the program leaves them open");
}
