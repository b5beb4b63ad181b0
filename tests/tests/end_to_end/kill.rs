//! The trace of a killed process holds all finished calls and the one that it was in.

use urscope_tests::{Adapter, Release, TestRun, Trace, perfetto, run};

use crate::on_both_adapters;

on_both_adapters! {
    /// The consumer dies between two calls, after all was well; its fixed twin exits there.
    fn a_death_is_named_with_its_signal_and_is_not_clean(adapter) {
        for backend in ["adapter", "level_zero"] {
            let run = |how: &str| {
                let run = TestRun::of("ends_by_signal", Release::R2026_2, adapter).arg(how);
                run.env("URSCOPE_BACKEND", backend).run()
            };
            for (number, name) in [("11", "SIGSEGV"), ("6", "SIGABRT"), ("15", "SIGTERM")] {
                let outcome = run(number);
                let report = outcome.report();
                assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{name}: {report:#?}");
                let said = report.reason().expect("a reason");
                assert!(said.starts_with("ends_by_signal (pid ") && said.ends_with(&format!(") died of {name}")), "{said}");
                let signals: Vec<_> = report.processes().iter().filter_map(|process| process["signal"].as_str()).collect();
                assert_eq!(signals, [name]);
            }
            let outcome = run("0");
            assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{:#?}", outcome.report());
        }
    }
}

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

        // Being killed is no violation, but what the process would have done is not known.
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{report:#?}");
        assert_eq!(report.violations(), [""; 0], "{report:#?}");
        let said = format!("killed_in_call (pid {}) died of SIGKILL inside call 33 (urIPCOpenMemHandleExp)", killed.pid());
        assert_eq!(report.reason(), Some(&*said));
        let process = report.process(killed.pid());
        assert_eq!((&process["ended"], &process["signal"]), (&"killed".into(), &"SIGKILL".into()));
        assert_eq!(report.process(parent[0].pid())["ended"], "exited");

        // The files that were left give the same verdict.
        let folder = outcome.trace_folder();
        let check = |options: &[&str]| {
            let folder = folder.to_str().expect("a path in UTF-8");
            run::urscope(&[&["check", folder], options].concat())
        };
        let checked = check(&[]);
        assert_eq!(checked.code, 2, "{}{}", checked.stdout, checked.stderr);
        assert!(checked.stdout.starts_with(&format!("urscope: clean, but {said} (2 processes, ")), "{}", checked.stdout);
        let expected = check(&["--expect-signal", "KILL"]);
        assert!(expected.code == 0 && expected.stdout.starts_with("urscope: clean (2 "), "{}", expected.stdout);
    }
}

/// A killed producer could not put its handle, so that is no leak.
#[test]
fn a_killed_producer_is_not_accused() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let run = TestRun::of("scenario killed_producer", Release::R2026_2, adapter);
        let outcome = run.option("--expect-signal").option("SIGKILL").run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (0, "clean"), "{report:#?}");
        let ended = |how: &str| report.processes().iter().filter(|process| process["ended"] == how).count();
        assert_eq!((ended("killed"), ended("exited")), (1, 1), "{report:#?}");
        assert!(outcome.stdout.ends_with("consumer: compare m seed 14\nconsumer: close m\n"), "{}", outcome.stdout);
        perfetto::opinions(&outcome.trace_files(), &[]).iter().for_each(perfetto::Opinion::assert_ok);
    }
}
