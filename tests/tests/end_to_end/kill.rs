//! The trace of a killed process holds all finished calls and the one that it was in.

use urscope_tests::{Adapter, Release, TestRun, Trace, perfetto, run};

use crate::on_both_adapters;

on_both_adapters! {
    fn is_readable_after_a_kill_inside_a_call(adapter) {
        let outcome = TestRun::of("killed_in_call", Release::R2026_2, adapter).run();
        assert!(outcome.stdout.contains("consumer was killed"), "{}{}", outcome.stdout, outcome.stderr);
        let traces = outcome.traces();
        let (killed, parent): (Vec<&Trace>, Vec<&Trace>) = traces.iter().partition(|trace| !trace.closed);
        assert_eq!((killed.len(), parent.len()), (1, 1), "one process was killed, one ended");
        let killed = killed[0];
        killed.assert_whole();

        // The program finished ten of each before it was killed.
        assert!(outcome.stdout.contains("consumer finished open 10, close 10"), "{}", outcome.stdout);
        assert_eq!(killed.count("E", "urIPCOpenMemHandleExp"), 10);
        assert_eq!(killed.count("E", "urIPCCloseMemHandleExp"), 10);
        assert_eq!(killed.unfinished(), ["urIPCOpenMemHandleExp"]);

        let query = "select name from slice where dur = -1";
        let opinion = perfetto::opinion(&killed.path, &[query]);
        opinion.assert_ok();
        assert_eq!(opinion.rows(0)[0]["name"], "urIPCOpenMemHandleExp");
        assert_eq!(opinion.count("unfinished"), 1);

        // Being killed is no violation, and the run is judged all the same.
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (0, "clean"), "{report:#?}");
        assert_eq!(report.process(killed.pid())["ended"], "killed");
        assert_eq!(report.process(parent[0].pid())["ended"], "exited");

        // The files that were left give the same verdict.
        let folder = outcome.trace_folder();
        let checked = run::urscope(&["check", "--format", "json", folder.to_str().expect("a path in UTF-8")]);
        assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    }
}

/// A killed producer could not put its handle, so that is no leak.
#[test]
fn a_killed_producer_is_not_accused() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::of("scenario killed_producer", Release::R2026_2, adapter).run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (0, "clean"), "{report:#?}");
        let ended = |how: &str| report.processes().iter().filter(|process| process["ended"] == how).count();
        assert_eq!((ended("killed"), ended("exited")), (1, 1), "{report:#?}");
        assert!(outcome.stdout.ends_with("consumer: compare m seed 14\nconsumer: close m\n"), "{}", outcome.stdout);
        perfetto::opinions(&outcome.trace_files(), &[]).iter().for_each(perfetto::Opinion::assert_ok);
    }
}
