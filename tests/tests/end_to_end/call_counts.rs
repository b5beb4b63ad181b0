//! No call is lost and none is recorded twice, with eight threads in each of two processes.

use urscope_tests::{Adapter, Release, TestRun, perfetto, trace};

use crate::on_both_adapters;

on_both_adapters! {
    fn every_call_is_in_the_trace_once(adapter) {
        let outcome = TestRun::new("clean_threads", Release::R2026_2, adapter).run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.violations()), (0, vec![]), "{}", outcome.stderr);
        let traces = outcome.traces();
        traces.iter().for_each(trace::Trace::assert_whole);

        // The program prints how many calls it made: "producer called get 8008, put 8008".
        let printed = |verb: &str| -> usize {
            let (_, after) = outcome.stdout.split_once(&format!("{verb} ")).expect("the program prints what it called");
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().expect("a number of calls")
        };
        let calls = [
            ("called get", "urIPCGetMemHandleExp"),
            (", put", "urIPCPutMemHandleExp"),
            ("called open", "urIPCOpenMemHandleExp"),
            (", close", "urIPCCloseMemHandleExp"),
        ];
        for (verb, entry_point) in calls {
            let made = printed(verb);
            assert!(made >= 8000);
            assert_eq!(trace::count(&traces, "B", entry_point), made, "begins of {entry_point}");
            assert_eq!(trace::count(&traces, "E", entry_point), made, "ends of {entry_point}");
            assert_eq!(report.calls(entry_point), made as u64, "calls of {entry_point} in the report");
        }

        // Perfetto sees the same number, each on the thread that made the call.
        let query = "select count(*) as calls, count(distinct track_id) as threads from slice where name glob 'urIPC*'";
        let opinions = perfetto::opinions(&outcome.trace_files(), &[query]);
        for (opinion, trace) in opinions.iter().zip(&traces) {
            opinion.assert_ok();
            assert_eq!(opinion.count("unfinished"), 0);
            let made = trace.calls("B").filter(|call| call["name"].as_str().is_some_and(|name| name.starts_with("urIPC")));
            assert_eq!(opinion.rows(0)[0]["calls"], made.count());
            assert!(opinion.rows(0)[0]["threads"].as_u64() >= Some(8), "{opinion:#?}");
        }
    }
}
