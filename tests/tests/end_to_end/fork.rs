//! A process that forks without exec: the child never writes into its parent's trace.

use urscope_tests::{Adapter, Outcome, Release, TestRun, Trace, perfetto, record_fields};

fn run(program: &str, adapter: Adapter) -> (Outcome, Vec<Trace>) {
    let outcome = TestRun::new(program, Release::R2026_2, adapter).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let traces = outcome.traces();
    traces.iter().for_each(Trace::assert_whole);
    traces.iter().for_each(record_fields::assert_devices);
    perfetto::opinions(&outcome.trace_files(), &[]).iter().for_each(perfetto::Opinion::assert_ok);
    (outcome, traces)
}

fn gets_and_puts(trace: &Trace) -> (usize, usize) {
    (trace.count("E", "urIPCGetMemHandleExp"), trace.count("E", "urIPCPutMemHandleExp"))
}

#[test]
fn a_child_with_calls_writes_its_own_file() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let (outcome, mut traces) = run("sharing fork_child", adapter);
        assert_eq!(outcome.report().violations(), Vec::<String>::new());
        traces.sort_by_key(|trace| gets_and_puts(trace).0);
        let made: Vec<(usize, usize)> = traces.iter().map(gets_and_puts).collect();
        assert_eq!(made, [(1, 1), (3, 3)], "{:?}", outcome.trace_files());
        assert_ne!(traces[0].pid(), traces[1].pid());
        for trace in &traces {
            let devices = trace.records.iter().filter(|record| record["name"] == "urscope_device").count();
            assert_eq!(devices, 1, "{}", trace.path.display());
        }
        let headers = traces.iter().map(|trace| trace.records.iter().find(|record| record["name"] == "urscope_header"));
        let headers: Vec<_> = headers.map(|header| &header.expect("a header")["args"]).collect();
        let forked: Vec<bool> = headers.iter().map(|header| header["forked_ns"].is_u64()).collect();
        assert_eq!(forked, [false, true], "only the child has the time of its fork");
        let began = |header: &serde_json::Value| header["clock"]["monotonic_ns"].as_u64().expect("a clock");
        let fork = headers[1]["forked_ns"].as_u64().expect("just seen");
        let returned = headers[1]["fork_returned_ns"].as_u64().expect("the time at which the fork returned");
        assert!(began(headers[0]) < fork && fork <= returned && returned <= began(headers[1]), "{headers:?}");
        assert_eq!(headers[1]["parent"], headers[0]["pid"]);
    }
}

#[test]
fn a_child_without_calls_changes_nothing() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let (outcome, traces) = run("sharing fork_idle_child", adapter);
        assert_eq!(outcome.report().violations(), Vec::<String>::new());
        let parent = traces.iter().find(|trace| gets_and_puts(trace) == (1, 1)).expect("the parent's trace");
        assert!(parent.closed, "the parent ended orderly");
    }
}
