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
}
