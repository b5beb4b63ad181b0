//! Checks that hold for every recorded run, whatever it shares.

use urscope_tests::{Outcome, Trace, perfetto, record_fields, trace};

/// The traces of a run. Each is complete, has all fields, and loads in Perfetto without a warning.
pub(crate) fn complete_traces(outcome: &Outcome) -> Vec<Trace> {
    let traces = outcome.traces();
    for trace in &traces {
        trace.assert_whole();
        assert!(trace.closed, "{} was not closed at the end of its process", trace.path.display());
        record_fields::assert_as_declared(trace);
        record_fields::assert_devices(trace);
    }
    for opinion in perfetto::opinions(&outcome.trace_files(), &[]) {
        opinion.assert_ok();
        assert_eq!(opinion.count("unfinished"), 0);
    }
    traces
}

/// Checks how often each of these functions was called and returned, in the traces and in the report.
pub(crate) fn assert_counts<const N: usize>(outcome: &Outcome, traces: &[Trace], expected: [(&str, usize); N]) {
    for (call, count) in expected {
        assert_eq!((trace::count(traces, "B", call), trace::count(traces, "E", call)), (count, count), "{call}");
        assert_eq!(outcome.report().calls(call), count as u64, "{call} in the report");
    }
}
