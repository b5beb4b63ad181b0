//! The end of a process comes behind everything that a program may still do: what a library tidies up when it is finalized is
//! no leak.

use urscope_tests::{Adapter, Outcome, Release, Trial, apps};

/// Runs Python, which opens the library, as it opens a module.
fn in_python(library: &str, adapter: Adapter) -> Outcome {
    let library = apps::executable(library, Release::R2026_2);
    let open = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).share())";
    Trial::of_program(Release::R2026_2.python()).adapter(adapter).arg("-c").arg(open).arg(library).run()
}

#[test]
fn what_a_library_puts_when_it_is_finalized_is_no_leak() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let outcome = in_python("late_put.so", adapter);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(outcome.stdout.lines().last(), Some("tidied up"), "{}", outcome.stdout);
        assert!(!outcome.stderr.contains("leaked"), "{}", outcome.stderr);
        assert_eq!((outcome.report().verdict(), outcome.report().sins()), ("clean", vec![]));
        for trace in outcome.traces() {
            trace.assert_whole();
            let last = trace.records.last().expect("a trace has records");
            assert_eq!(last["name"], "urscope_footer", "{last}");
            assert!(!trace.records.iter().any(|record| record["name"] == "finding"));
        }
    }
}
