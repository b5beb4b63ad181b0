//! A run without an IPC call is never called clean: the verdict gives the reason, and the program is undisturbed.

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, report::tells_every_signal};

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

/// Two ranks that end by a signal, of an instruction that no processor has or of another process, before they have
/// loaded anything.
fn ranks_that_die(signals: &str, options: &[&str]) -> Outcome {
    let dies = "import os, signal, sys, time; time.sleep(2); os.kill(os.getpid(), int(sys.argv[1 + int(os.environ['PMI_RANK'])]))";
    let python = Release::R2026_2.python();
    let launcher = "for rank in 0 1; do PMI_RANK=$rank PMI_SIZE=2 \"$@\" & done; wait; exit 0";
    let run = options.iter().fold(TestRun::of_program("/bin/bash"), |run, option| run.option(*option));
    let run = run.arg("-c").arg(launcher).arg("launcher").arg(python).arg("-c").arg(dies);
    signals.split(' ').fold(run, TestRun::arg).run()
}

#[test]
fn ranks_that_die_before_their_first_call_are_told() {
    if !tells_every_signal() {
        return assert_not_judged(&ranks_that_die("4 4", &[]));
    }
    let outcome = ranks_that_die("4 4", &[]);
    assert_not_judged(&outcome);
    let reason = outcome.report().reason().unwrap_or_default().to_owned();
    assert!(
        reason.starts_with("both ranks died of SIGILL before they loaded an adapter; SIGILL usually means"),
        "{reason}"
    );
    let outcome = ranks_that_die("11 15", &[]);
    assert_not_judged(&outcome);
    let reason = outcome.report().reason().unwrap_or_default().to_owned();
    assert!(reason.starts_with("rank 0 (pid ") && reason.contains("died of SIGSEGV, and rank 1 (pid "), "{reason}");
    assert!(reason.ends_with("died of SIGTERM before they loaded an adapter"), "{reason}");
    let outcome = ranks_that_die("4 4", &["--expect-signal", "ILL"]);
    assert!(
        outcome.report().reason().is_some_and(|reason| reason.starts_with("nothing was recorded")),
        "{}",
        outcome.stderr
    );
}

/// However soon it dies.
#[test]
fn a_program_that_dies_before_its_first_call_is_told() {
    let outcome = TestRun::of_program("/bin/sh").arg("-c").arg("kill -ILL $$").run();
    assert_eq!(outcome.code, 128 + 4, "{}", outcome.stderr);
    let report = outcome.report();
    let reason = report.reason().unwrap_or_default();
    assert_eq!(report.verdict(), "not-judged");
    assert!(
        reason.contains(" (pid ") && reason.contains(") died of SIGILL before it loaded an adapter; SIGILL"),
        "{reason}"
    );
}

/// Beside a rank that is judged.
#[test]
fn a_process_that_dies_before_its_first_call_keeps_the_others_from_being_clean() {
    let script = "\"$0\" & (sleep 2; kill -ILL $BASHPID); (sleep 2; kill -TERM $BASHPID); wait $!";
    let program = apps::executable("clean", Release::R2026_2);
    let outcome = TestRun::of_program("/bin/bash").adapter(Adapter::V2).arg("-c").arg(script).arg(program).run();
    let report = outcome.report();
    if !tells_every_signal() {
        return assert!([0, 2].contains(&outcome.code), "{}", outcome.stderr);
    }
    assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{}", outcome.stderr);
    let [limit] = report.limits() else { panic!("not one limit: {report:#?}") };
    let text = limit["text"].as_str().unwrap_or_default();
    assert!(
        text.starts_with("bash (pid ") && text.contains(") died of SIGILL before it made a call that is recorded"),
        "{text}"
    );
}
