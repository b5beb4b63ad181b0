//! A run without an IPC call is never called clean: the verdict gives the reason, and the program is undisturbed.

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps};

fn assert_not_judged(outcome: &Outcome) {
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.verdict(), "not-judged");
    assert!(report.reason().is_some_and(|reason| !reason.is_empty()), "{report:#?}");
}

#[test]
fn a_python_program_without_ipc() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let python = TestRun::of_program(Release::R2026_2.python()).adapter(adapter).arg(apps::source("no_ipc.py"));
        let outcome = python.run();
        assert_eq!(outcome.stdout, "True, 16384 bytes came back\n", "{}", outcome.stderr);
        assert_not_judged(&outcome);
    }
}

#[test]
fn a_program_without_any_runtime() {
    let outcome = TestRun::of_program("/bin/sh").arg("-c").arg("echo untouched").run();
    assert_eq!(outcome.stdout, "untouched\n");
    assert_not_judged(&outcome);
}

/// The exit code of the program takes precedence.
#[test]
fn a_program_that_fails_keeps_its_exit_code() {
    let outcome = TestRun::of_program("/bin/sh").arg("-c").arg("exit 7").run();
    assert_eq!(outcome.code, 7, "{}", outcome.stderr);
}
