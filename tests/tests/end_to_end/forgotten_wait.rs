//! On a slowed device a forgotten wait always shows: the other process reads data that are not there yet.

use urscope_tests::{Adapter, Release, TestRun};

use crate::on_both_adapters;

on_both_adapters! {
    /// The delay is long enough for the consumer to read before the producer's copy begins.
    fn what_was_not_waited_for_is_read_unfinished(adapter) {
        for (mode, expected) in [("forgotten", "then the old data"), ("mended", "then the new data")] {
            let run = TestRun::of("forgotten_wait", Release::R2026_2, adapter).env("ZE_SOFT_DELAY", "4s").arg(mode);
            let outcome = run.run();
            assert_eq!((outcome.code, outcome.stdout.lines().last()), (0, Some(expected)), "{mode}: {}", outcome.stderr);
        }
    }

    /// The consumer's copy is that late. What it reads then is what the producer has written after the close.
    fn a_close_that_comes_too_early_corrupts_the_copy_and_is_found(adapter) {
        for (mode, expected, verdict) in [
            ("forgotten", "consumer has something else", "findings"),
            ("mended", "consumer has what was sent", "clean"),
        ] {
            let outcome = TestRun::of("close_in_use", Release::R2026_2, adapter).arg(mode).run();
            assert_eq!(outcome.stdout.lines().last(), Some(expected), "{mode}: {}", outcome.stderr);
            let report = outcome.report();
            assert_eq!(report.verdict(), verdict, "{mode}: {report:#?}");
            for finding in report.findings() {
                assert!(finding["message"].as_str().unwrap().contains("urEnqueueUSMMemcpy"), "{finding:#?}");
            }
        }
    }
}
