//! A correct program of two processes is traced completely and found clean, on every release and both adapters.

use urscope_tests::{Adapter, Release, TestRun, perfetto, trace};

use crate::on_both_adapters;

fn is_clean(release: Release, adapter: Adapter) {
    let outcome = TestRun::new("clean", release, adapter).run();
    assert_eq!(outcome.code, 0, "{release:?}: {}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.stdout);
    assert_eq!(lines[0].replace("producer wrote", "consumer read"), lines[1], "the consumer read something else");

    let report = outcome.report();
    assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{release:?}: {report:#?}");
    assert_eq!(report.processes().len(), 2);
    let traces = outcome.traces();
    assert_eq!(traces.len(), 2);
    for trace in &traces {
        trace.assert_whole();
        assert!(trace.closed, "{} was not closed at the end of its process", trace.path.display());
        assert!(trace.unfinished().is_empty());
    }
    for call in ["urIPCGetMemHandleExp", "urIPCPutMemHandleExp", "urIPCOpenMemHandleExp", "urIPCCloseMemHandleExp"] {
        assert_eq!((trace::count(&traces, "B", call), trace::count(&traces, "E", call)), (1, 1), "{call}");
        assert_eq!(report.calls(call), 1, "{call}");
    }
    for opinion in perfetto::opinions(&outcome.trace_files(), &[]) {
        opinion.assert_ok();
        assert_eq!(opinion.count("unfinished"), 0);
    }
}

on_both_adapters! {
    fn is_clean_on_every_release(adapter) {
        for release in [Release::R2026_2, Release::R2026_1, Release::R2026_0] {
            is_clean(release, adapter);
        }
    }
}

/// The consumer opens the bytes that the producer got, so their fingerprints are equal.
#[test]
fn shows_the_same_fingerprint_on_both_sides() {
    let traces = TestRun::new("clean", Release::R2026_2, Adapter::V2).run().traces();
    let fingerprints = |call: &str| -> Vec<String> {
        traces
            .iter()
            .flat_map(|trace| trace.calls("B").chain(trace.calls("E")))
            .filter(|record| record["name"] == call)
            .filter_map(|record| record["args"]["fingerprint"].as_str().map(String::from))
            .collect()
    };
    let got = fingerprints("urIPCGetMemHandleExp");
    let opened = fingerprints("urIPCOpenMemHandleExp");
    assert_eq!(got.len(), 1);
    assert_eq!(got, opened);
}
