//! A process that makes more commands than its trace has room for: the trace stays small, and what is judged is right.

use urscope_tests::{Adapter, Outcome, Release, TestRun, trace};

use crate::on_both_adapters;

/// Runs `long_run` with more copies than a trace of 1 MiB holds, and with a limit.
fn run(adapter: Adapter, form: &str, mistake: &str, limit: &str) -> Outcome {
    let run = TestRun::new("long_run", Release::R2026_2, adapter).arg("30000").arg(mistake);
    run.env("URSCOPE_FORMAT", form).option("--trace-limit").option(limit).run()
}

fn copies(outcome: &Outcome) -> usize {
    trace::count(&outcome.traces(), "B", "urEnqueueUSMMemcpy")
}

/// The size of the largest trace, in MiB.
fn size(outcome: &Outcome) -> u64 {
    let sizes = outcome.trace_files().into_iter().map(|file| file.metadata().expect("a file").len());
    sizes.max().expect("a trace").div_ceil(1 << 20)
}

on_both_adapters! {
    /// The verdict says from when the order of commands was not judged.
    fn a_trace_with_a_limit_stays_small_and_raises_no_false_alarm(adapter) {
        for form in ["binary", "chrome"] {
            let outcome = run(adapter, form, "", "1");
            let report = outcome.report();
            assert_eq!(report.violations(), [""; 0], "{form}");
            let unseen = report.unseen().join("; ");
            assert!(unseen.contains("reached its limit after") && unseen.contains("--trace-limit"), "{unseen}");
            assert!(size(&outcome) <= 3 && (1000..30_000).contains(&copies(&outcome)), "{} MiB", size(&outcome));
        }
    }

    fn a_use_after_the_end_is_found_where_not_all_commands_are_recorded(adapter) {
        for form in ["binary", "chrome"] {
            let outcome = run(adapter, form, "closed", "1");
            assert_eq!(outcome.report().violations(), ["error use-after-close"], "{form}");
        }
    }

    fn a_trace_without_a_limit_has_every_command(adapter) {
        let outcome = run(adapter, "binary", "early", "1024");
        let report = outcome.report();
        assert_eq!(report.violations(), ["error race"]);
        assert_eq!(report.unseen(), [""; 0]);
        assert!(copies(&outcome) > 30_000 && size(&outcome) > 3, "{} MiB", size(&outcome));
    }
}
