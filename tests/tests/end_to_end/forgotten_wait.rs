//! On a slowed device a forgotten wait always shows: the other process reads data that are not there yet.

use std::thread;

use urscope_tests::{Adapter, Release, TestRun, record_fields, trace};

use crate::on_both_adapters;

/// Runs something for each of several cases, side by side: most of the time they wait for the device.
fn side_by_side<T: Copy + Send + Sync>(cases: &[T], run: impl Fn(T) + Sync) {
    thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(|| run(*case)))));
}

/// The programs that close memory in which a command works, and the function of the command.
const CLOSES: [(&str, &str); 3] = [
    ("mistakes close_in_use", "(urEnqueueUSMMemcpy,"),
    ("ur_sharing rows_in_use", "(urEnqueueUSMMemcpy2D,"),
    ("kernels in_use", "(urEnqueueKernelLaunchWithArgsExp,"),
];

/// A close that comes too early is found, and names the command. Where it does not, nothing is found.
fn is_found(adapter: Adapter, (program, command): (&str, &str), mode: &str) {
    let (expected, found) = match mode {
        // A kernel may leave alone what it was given.
        "forgotten" if program.starts_with("kernels") => {
            ("consumer has something else", vec!["error closed-while-in-use", "note race"])
        }
        "forgotten" => ("consumer has something else", vec!["error closed-while-in-use", "error race"]),
        _ => ("consumer has what was sent", vec![]),
    };
    let outcome = TestRun::new(program, Release::R2026_2, adapter).with_engine().arg(mode).run();
    assert_eq!(outcome.stdout.lines().last(), Some(expected), "{program} {mode}: {}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.violations(), found, "{program} {mode}: {report:#?}");
    for finding in report.findings() {
        assert!(finding["message"].as_str().unwrap().contains(command), "{finding:#?}");
    }
    // Where nothing is unfinished, a close says nothing of commands.
    if mode == "fixed" {
        outcome.traces().iter().for_each(record_fields::assert_as_declared);
    }
    let fills = usize::from(program == "ur_sharing rows_in_use");
    assert_eq!(trace::count(&outcome.traces(), "B", "urEnqueueUSMFill2D"), fills);
}

on_both_adapters! {
    /// The delay is long enough for the consumer to read before the producer's copy begins.
    fn what_was_not_waited_for_is_read_unfinished(adapter) {
        let modes = [("forgotten", "then the old data", &["error race"][..]), ("fixed", "then the new data", &[])];
        side_by_side(&modes, |(mode, expected, found)| {
            let run = TestRun::new("sharing forgotten_wait", Release::R2026_2, adapter).env("ZE_SOFT_DELAY", "4s").arg(mode);
            let outcome = run.run();
            assert_eq!(outcome.stdout.lines().last(), Some(expected), "{mode}: {}", outcome.stderr);
            assert_eq!(outcome.report().violations(), found, "{mode}");
        });
    }

    /// The consumer's copy is that late. What it reads then is what the producer has written after the close.
    fn a_close_that_comes_too_early_corrupts_the_copy_and_is_found(adapter) {
        let cases: Vec<_> = CLOSES.into_iter().flat_map(|close| [(close, "forgotten"), (close, "fixed")]).collect();
        side_by_side(&cases, |(close, mode)| is_found(adapter, close, mode));
    }
}
