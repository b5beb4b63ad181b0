//! The binary form of the trace: judged as the Chrome form is, and readable by Perfetto as it is.

use urscope_tests::{Adapter, Outcome, Release, TestRun, Trace, perfetto, run};

use crate::on_both_adapters;

/// Programs with several processes and threads, forks, kills, findings on both sides, and notes.
const PROGRAMS: [(&str, &[&str]); 9] = [
    ("clean", &[]),
    ("clean_threads", &["100"]),
    ("sharing fork_child", &[]),
    ("free_while_open", &[]),
    ("scenario exporter_gone", &[]),
    ("scenario killed_producer", &[]),
    ("mistakes leaked_handle", &[]),
    ("ur_sharing repeated_violations", &[]),
    ("scenario wrong_usm", &[]),
];

fn outcome(program: &str, arguments: &[&str], adapter: Adapter, form: &str) -> Outcome {
    let test_run = TestRun::new(program, Release::R2026_2, adapter).env("URSCOPE_FORMAT", form);
    arguments.iter().fold(test_run, |test_run, argument| test_run.arg(*argument)).run()
}

fn calls(outcome: &Outcome) -> Vec<(usize, usize)> {
    let mut counts: Vec<_> =
        outcome.traces().iter().map(|trace| (trace.calls("B").count(), trace.calls("E").count())).collect();
    counts.sort_unstable();
    counts
}

on_both_adapters! {
    /// Both forms of a run have the same verdict, findings and calls, and the same processes ended orderly. The
    /// adapters take turns.
    fn both_forms_are_judged_alike(adapter) {
        for (program, arguments) in PROGRAMS.into_iter().skip(usize::from(adapter == Adapter::V2)).step_by(2) {
            let [chrome, binary] = ["chrome", "binary"].map(|form| outcome(program, arguments, adapter, form));
            let judged = |outcome: &Outcome| (outcome.code, outcome.report().verdict().to_owned(), outcome.report().violations());
            assert_eq!(judged(&chrome), judged(&binary), "{program}: {}", binary.stderr);
            assert_eq!(calls(&chrome), calls(&binary), "{program}");
            let closed = |outcome: &Outcome| outcome.traces().iter().filter(|trace| trace.closed).count();
            assert_eq!(closed(&chrome), closed(&binary), "{program}");
            binary.traces().iter().for_each(Trace::assert_whole);
            perfetto::opinions(&binary.trace_files(), &[]).iter().for_each(perfetto::Opinion::assert_ok);
        }
    }

    /// The trace of a process that was killed inside a call shows that call.
    fn a_killed_process_leaves_whole_records(adapter) {
        let outcome = outcome("killed_in_call", &[], adapter, "binary");
        let traces = outcome.traces();
        let killed: Vec<&Trace> = traces.iter().filter(|trace| !trace.closed).collect();
        assert_eq!((killed.len(), traces.len()), (1, 2));
        assert_eq!(killed[0].count("E", "urIPCOpenMemHandleExp"), 10);
        assert_eq!(killed[0].unfinished(), ["urIPCOpenMemHandleExp"]);
        let opinion = perfetto::opinion(&killed[0].path, &[]);
        opinion.assert_ok();
        assert_eq!(opinion.count("unfinished"), 1);
        assert_eq!((outcome.code, outcome.report().verdict()), (2, "partly-judged"), "{}", outcome.stderr);
    }
}

/// Commands other than `check` read the form, too.
#[test]
fn other_commands_read_it() {
    let outcome = outcome("free_while_open", &[], Adapter::V2, "binary");
    let folder = outcome.trace_folder();
    let folder = folder.to_str().expect("a path in UTF-8");
    let merged = folder.to_owned() + "/merged.json";
    for arguments in [&["stats", folder][..], &["holders", folder], &["export", folder, "--output", &merged]] {
        let ended = run::urscope(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
    }
    let opinion = perfetto::opinion(merged.as_ref(), &[]);
    opinion.assert_ok();
    assert!(opinion.count("slices") > 10);
}
