//! Findings about the circumstances of calls: refused opens, unsupported devices, slow calls, repeated work and growth.

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun};

use Adapter::{V1, V2};

use crate::violations::is_at;

const ALTERED_HANDLE: &str = "error altered-handle";
const CHURN: &str = "note churn";
const DESCRIPTOR_GROWTH: &str = "note descriptor-growth";
const GARBAGE_HANDLE: &str = "note garbage-handle";
const OVERWRITTEN_HANDLE: &str = "warning overwritten-handle";
const PERMISSION_DENIED: &str = "warning permission-denied";
const PROFILED_IPC_EVENT: &str = "error profiled-ipc-event";
const SIZE_MISMATCH: &str = "error size-mismatch";
const SLOW_CALL: &str = "note slow-call";
const UNSUPPORTED_DEVICE: &str = "warning unsupported-device";
const UNTRACED_PEER: &str = "note untraced-peer";
const WRONG_DEVICE: &str = "error wrong-device";

/// What the tests of this module find, as "severity rule".
pub(crate) const EXPECTED: [&str; 12] = [
    ALTERED_HANDLE,
    OVERWRITTEN_HANDLE,
    CHURN,
    DESCRIPTOR_GROWTH,
    GARBAGE_HANDLE,
    PERMISSION_DENIED,
    PROFILED_IPC_EVENT,
    SIZE_MISMATCH,
    SLOW_CALL,
    UNSUPPORTED_DEVICE,
    UNTRACED_PEER,
    WRONG_DEVICE,
];

fn run(app: &str, adapter: Adapter, argument: Option<&str>) -> Outcome {
    let test_run = TestRun::new(app, Release::R2026_2, adapter);
    argument.into_iter().fold(test_run, TestRun::arg).run()
}

fn message_contains(outcome: &Outcome, rule: &str, text: &str) {
    let report = outcome.report();
    let message = report.finding(rule)["message"].as_str().expect("a finding has a message");
    assert!(message.contains(text), "{message}");
}

#[test]
fn a_refusal_of_the_kernel_is_reported_with_its_cause() {
    for (adapter, answer, besides) in [(V1, "0", Some("error success-without-result")), (V2, "45", None)] {
        let outcome = run("ur_sharing no_permission", adapter, None);
        assert_eq!(outcome.stdout, format!("open answered {answer}, nothing\na byte less answered 4\n"));
        let violations = [SIZE_MISMATCH].into_iter().chain(besides).chain([PERMISSION_DENIED]);
        assert_eq!(outcome.report().violations(), violations.collect::<Vec<_>>());
        message_contains(&outcome, "permission-denied", "is not dumpable (PR_SET_DUMPABLE)");
    }
}

#[test]
fn handle_data_that_no_get_returned_are_found() {
    let outcome = run("ur_memory only open-of-garbage", V2, None);
    assert_eq!(outcome.report().violations(), [GARBAGE_HANDLE], "{}", outcome.stdout);
    let outcome = run("ur_memory only open-of-zeros", V2, None);
    assert_eq!(outcome.report().violations(), [ALTERED_HANDLE], "{}", outcome.stdout);
    message_contains(&outcome, "altered-handle", ": all of them are zero, so they were never filled in");
    let outcome = run("sharing damaged_handle", V2, None);
    let violations = outcome.report().violations();
    for violation in [ALTERED_HANDLE, SIZE_MISMATCH] {
        assert!(violations.iter().any(|found| found == violation), "{violations:?}");
    }
}

/// The consumer was traced, and so was the process that got the bytes.
#[test]
fn a_byte_that_changed_on_its_way_is_an_error_at_its_open() {
    for adapter in [V1, V2] {
        let altered = run("sharing altered_byte", adapter, None);
        assert_eq!(altered.report().violations(), [ALTERED_HANDLE], "{}", altered.stdout);
        message_contains(&altered, "altered-handle", "they differ in byte 32 (counted from 0)");
        is_at(&altered, "sharing", altered.report().finding("altered-handle"), "// @open");
        let unaltered = run("sharing unaltered_byte", adapter, None);
        assert!(unaltered.stdout.contains("open accepted"), "{}", unaltered.stdout);
        assert!(unaltered.report().findings().is_empty(), "{}", unaltered.stderr);
    }
}

/// The program works, because urscope gives the v1 adapter a copy.
#[test]
fn what_fails_without_urscope_is_said() {
    let on = |mode: &str, adapter, backend| {
        let outcome = TestRun::new(mode, Release::R2026_2, adapter).env("URSCOPE_BACKEND", backend).run();
        assert!(outcome.stdout.ends_with("open accepted\n"), "{}", outcome.stdout);
        outcome
    };
    let warned = on("sharing opened_and_passed_on", V1, "adapter");
    assert_eq!(warned.report().violations(), [OVERWRITTEN_HANDLE], "{}", warned.stderr);
    message_contains(&warned, "overwritten-handle", "would have changed them from byte 44 on, and sharing (pid ");
    is_at(&warned, "sharing", warned.report().finding("overwritten-handle"), "// @own");
    let clean = [("passed_on_and_opened", V1, "adapter"), ("opened_and_passed_on", V1, "level_zero")];
    for (mode, adapter, backend) in clean.into_iter().chain([("opened_and_passed_on", V2, "adapter")]) {
        let outcome = on(&format!("sharing {mode}"), adapter, backend);
        assert!(outcome.report().findings().is_empty(), "{mode}: {}", outcome.stderr);
    }
}

#[test]
fn bytes_that_an_untraced_process_overwrote_are_named() {
    let changed = run("sharing overwritten_bytes", V1, None);
    assert!(changed.stdout.ends_with("the bytes have changed\nopen handed out no pointer\n"), "{}", changed.stdout);
    let violations = [ALTERED_HANDLE, "error success-without-result"];
    assert_eq!(changed.report().violations(), violations, "{}", changed.stderr);
    message_contains(&changed, "altered-handle", "differ in bytes 44 to 45 (counted from 0)");
    assert_eq!(changed.report().finding("altered-handle")["other"]["function"], "urIPCGetMemHandleExp");
    let unchanged = run("sharing overwritten_bytes", V2, None);
    assert!(unchanged.stdout.ends_with("the bytes are unchanged\nopened\n"), "{}", unchanged.stdout);
    assert!(unchanged.report().findings().is_empty(), "{}", unchanged.stderr);
}

#[test]
fn sharing_on_a_device_without_support_is_found() {
    let outcome = run("ur_violations", V1, Some("memory_that_the_device_cannot_share"));
    assert_eq!(outcome.stdout, "shared though the device says no\n", "{}", outcome.stderr);
    assert_eq!(outcome.report().violations(), [UNSUPPORTED_DEVICE]);
    let outcome = run("ur_violations", V2, Some("memory_that_the_device_cannot_share"));
    assert_eq!(outcome.stdout, "shared though the device says yes\n", "{}", outcome.stderr);
    assert!(outcome.report().findings().is_empty());
}

#[test]
fn a_device_that_is_not_that_of_the_context_or_the_memory_is_found() {
    let violation = |violation: &str, adapter: Adapter, backend: &str| {
        let test_run = TestRun::new("ur_violations", Release::R2026_2, adapter).env("URSCOPE_BACKEND", backend);
        test_run.env("ZE_SOFT_DEVICES", "2").arg(violation).run()
    };
    let answers =
        [(V1, "adapter", "5"), (V2, "adapter", "2147483646"), (V1, "level_zero", "5"), (V2, "level_zero", "5")];
    for (adapter, backend, answer) in answers {
        let outcome = violation("a_device_that_is_not_the_contexts", adapter, backend);
        assert_eq!(outcome.stdout, format!("open on another device: {answer}\n"), "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), [WRONG_DEVICE]);
        message_contains(&outcome, "wrong-device", " names device 1 (urscope software device) in call ");
        message_contains(&outcome, "wrong-device", " has only device 0 (urscope software device) since call ");
        let outcome = violation("a_device_that_is_not_the_memorys", adapter, backend);
        assert_eq!(outcome.stdout, "open on another device: 0\n", "{}", outcome.stderr);
        assert_eq!(outcome.report().violations(), ["note open-in-producer", "note wrong-device"]);
        message_contains(&outcome, "wrong-device", " is on device 0 (urscope software device) since call ");
    }
}

#[test]
fn an_event_that_is_shared_and_profiled_is_found() {
    let outcome = run("ur_event only create-shared-with-profiling", V2, None);
    assert_eq!(outcome.stdout, "create-shared-with-profiling: 4\n");
    assert_eq!(outcome.report().violations(), [PROFILED_IPC_EVENT]);
}

#[test]
fn repeated_gets_are_reported_once_with_their_cost() {
    for adapter in [V1, V2] {
        let outcome = run("scenario churn", adapter, None);
        assert_eq!(outcome.report().violations(), [CHURN], "{}", outcome.stderr);
        message_contains(&outcome, "churn", " 150 times, 149 times after all of it had been put");
    }
}

#[test]
fn a_call_in_which_the_process_is_stopped_is_slow() {
    for adapter in [V1, V2] {
        let outcome = run("odd_process", adapter, Some("stopped_in_a_call"));
        assert_eq!(outcome.stdout, "stopped twice\n", "{}", outcome.stderr);
        // `violations` leaves it out, because any machine may be slow.
        let report = outcome.report();
        let is_slow = |finding: &Value| {
            let [severity, rule] = ["severity", "rule"].map(|word| finding[word].as_str().unwrap_or_default());
            format!("{severity} {rule}") == SLOW_CALL
        };
        assert!(report.findings().iter().any(is_slow), "{}", outcome.stderr);
    }
}

#[test]
fn growing_descriptors_are_told_apart_by_the_programs_handles() {
    let outcome = run("ur_violations", V2, Some("files_over_and_over"));
    assert_eq!(outcome.report().violations(), [CHURN, DESCRIPTOR_GROWTH], "{}", outcome.stderr);
    message_contains(&outcome, "descriptor-growth", "a cache, the driver or other files hold the rest");
    // The last sample may be taken behind a get, before its put.
    let report = outcome.report();
    let message = report.finding("descriptor-growth")["message"].as_str().expect("a finding has a message");
    assert!(message.contains("only 0 more handles") || message.contains("only 1 more handles"), "{message}");
    let outcome = run("ur_violations", V2, Some("handle_data_that_is_kept"));
    message_contains(&outcome, "descriptor-growth", "the program leaves them open");
}

/// A mapping belongs to the context in which it was opened, on whichever device that is.
#[test]
fn a_second_device_may_open_memory_of_the_first() {
    let found = [
        ("opened_on_second", None),
        ("opened_in_a_common_context", None),
        ("read_by_second", Some(("app::Gpu::read", "read accepted"))),
        ("closed_in_second", Some(("app::close", "close accepted"))),
    ];
    for (adapter, (mode, wrong)) in [V1, V2].into_iter().flat_map(|adapter| found.map(|found| (adapter, found))) {
        let outcome =
            TestRun::new("two_devices", Release::R2026_2, adapter).env("ZE_SOFT_DEVICES", "2").arg(mode).run();
        let report = outcome.report();
        assert!(outcome.stdout.contains("read accepted\n"), "{mode}: {} {}", outcome.stdout, outcome.stderr);
        let Some((function, accepted)) = wrong else {
            assert!(report.findings().is_empty(), "{mode}: {}", outcome.stderr);
            continue;
        };
        assert!(outcome.stdout.contains(accepted), "{mode}: {}", outcome.stdout);
        assert_eq!(report.violations(), ["error wrong-context"], "{mode}: {}", outcome.stderr);
        let finding = report.finding("wrong-context");
        assert!(finding["process"]["stack"].to_string().contains(function), "{mode}: {finding}");
    }
}
