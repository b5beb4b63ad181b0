//! The trace of a process ends after all calls of the process: what a library puts while it is finalized is no leak.

use urscope_tests::{Adapter, Release, TestRun};

#[test]
fn what_a_library_puts_when_it_is_finalized_is_no_leak() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = TestRun::of_library("late_put", Release::R2026_2, adapter).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(outcome.stdout.lines().last(), Some("tidied up"), "{}", outcome.stdout);
        assert!(!outcome.stderr.contains("leaked"), "{}", outcome.stderr);
        // The only finding: it opens its own memory.
        let noted = "open-in-producer";
        let violations = outcome.report().violations();
        assert_eq!((outcome.report().verdict(), violations), ("clean", vec![format!("note {noted}")]));
        for trace in outcome.traces() {
            trace.assert_whole();
            let last = trace.records.last().expect("a trace has records");
            assert_eq!(last["name"], "urscope_footer", "{last}");
            let mut found = trace.records.iter().filter(|record| record["name"] == "finding");
            assert!(found.all(|finding| finding["args"]["rule"] == noted));
        }
    }
}
