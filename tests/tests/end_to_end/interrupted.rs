//! Signal handlers, cancelled threads, small stacks, and forks that the C library does not announce: the program does
//! what it does without urscope, on one adapter in the Chrome form of the trace and on the other in the binary form.

use std::collections::BTreeSet;

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, Trace};

use crate::on_both_adapters;

/// The form in which a test runs on an adapter: neither knows the other.
fn form(adapter: Adapter) -> &'static str {
    if adapter == Adapter::V1 { "chrome" } else { "binary" }
}

fn run(mode: &str, form: &str, adapter: Adapter) -> Outcome {
    TestRun::new("interrupted", Release::R2026_2, adapter).arg(mode).env("URSCOPE_FORMAT", form).run()
}

/// Runs a mode bare and traced, and compares what the program prints.
fn is_undisturbed(mode: &str, adapter: Adapter) -> Outcome {
    let bare = TestRun::new("interrupted", Release::R2026_2, adapter).arg(mode).untraced().run();
    assert_eq!(bare.code, 0, "{mode} without urscope: {}", bare.stderr);
    let outcome = run(mode, form(adapter), adapter);
    assert_eq!(outcome.stdout, bare.stdout, "{mode}: {}", outcome.stderr);
    outcome.traces().iter().for_each(Trace::assert_whole);
    outcome
}

fn gets_and_puts(trace: &Trace) -> (usize, usize) {
    (trace.count("E", "urIPCGetMemHandleExp"), trace.count("E", "urIPCPutMemHandleExp"))
}

on_both_adapters! {
    /// Each process ends, although its handler interrupted the library that records its calls.
    fn a_handler_that_exits_ends_the_process(adapter) {
        let form = form(adapter);
        let outcome = run("exits_in_handler", form, adapter);
        assert_eq!(outcome.stdout, "processes that hung: 0\n", "{form}: {}", outcome.stderr);
        assert_eq!(outcome.trace_files().len(), 20);
        // The last line of a Chrome trace may be cut short, as that of a killed process.
        if form == "binary" {
            outcome.traces().iter().for_each(Trace::assert_whole);
        }
    }

    fn a_handler_may_fork(adapter) {
        let outcome = is_undisturbed("forks_in_handler", adapter);
        assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
    }

    /// The child writes its own file, and nothing into its parent's.
    fn a_fork_without_the_handlers_of_the_c_library_is_noticed(adapter) {
        let outcome = is_undisturbed("forks_unnoticed", adapter);
        assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
        let mut counts: Vec<(usize, usize)> = outcome.traces().iter().map(gets_and_puts).collect();
        counts.sort_unstable();
        assert_eq!(counts, [(3, 3), (6, 6)]);
    }

    /// They have nothing to record, and nothing that their parent's threads hold is waited for.
    fn children_of_such_forks_end_at_once(adapter) {
        let outcome = is_undisturbed("ends_after_clones", adapter);
        assert_eq!(outcome.stdout, "children that hung: 0\n", "{}", outcome.stderr);
        assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
        assert_eq!(outcome.trace_files().len(), 1);
    }

    /// Of the records of its calls some may be lost. No call of the runtime is taken for one of the program.
    fn a_handler_may_call_at_any_instruction(adapter) {
        let form = form(adapter);
        let program = TestRun::new("stepped_calls", Release::R2026_2, adapter);
        let outcome = program.env("URSCOPE_FORMAT", form).run();
        assert_eq!(outcome.stdout, "stepped\n", "{form}: {}", outcome.stderr);
        let report = outcome.report();
        let traces = outcome.traces();
        let is_false = |finding: &&Value| finding["severity"] != "note" && finding["rule"] != "calls-lost";
        let wrong: Vec<&Value> = report.findings().iter().filter(is_false).collect();
        assert!(wrong.is_empty(), "{form}: {wrong:#?}");
        let called: BTreeSet<&str> = traces[0].calls("B").filter_map(|call| call["name"].as_str()).collect();
        let others: Vec<&&str> = called.iter().filter(|name| !name.starts_with("ur")).collect();
        assert!(others.is_empty(), "{form}: the program does not call {others:?}");
        assert!(report.all_calls() > 10_000, "{form}: the handler has made {} calls", report.all_calls());
    }

    fn recording_is_no_cancellation_point(adapter) {
        let outcome = is_undisturbed("is_cancelled", adapter);
        assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
    }

    fn a_small_stack_suffices(adapter) {
        let outcome = is_undisturbed("has_a_small_stack", adapter);
        assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{}", outcome.stderr);
    }

    /// A handler that ends the process has 8,192 bytes of stack, and a page behind them that nothing may touch.
    fn a_handler_may_end_the_process_on_a_small_stack(adapter) {
        let form = form(adapter);
        let outcome = run("ends_on_small_signal_stacks", form, adapter);
        assert_eq!(outcome.stdout, "processes that ended otherwise: 0\n", "{form}: {}", outcome.stderr);
        assert_eq!(outcome.trace_files().len(), 10);
        // A handler that interrupts the library leaves a trace as that of a killed process.
        let report = outcome.report();
        assert!(report.processes().iter().any(|process| process["ended"] == "exited"), "{:?}", report.processes());
    }

    /// What can be left out is left out, and the user is told.
    fn a_program_without_memory_goes_on(adapter) {
        let outcome = is_undisturbed("has_no_memory", adapter);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("no memory is left: from here on"), "{}", outcome.stderr);
    }
}
