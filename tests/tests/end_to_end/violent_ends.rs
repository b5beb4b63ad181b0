//! Processes that are killed, forked, limited, filled and interrupted at random moments: no call that returned is
//! missing in a trace, no trace is unreadable, and nothing is found that nobody did. `scripts/fire` runs any number of
//! them.

use urscope_tests::violence::{Batch, Crowd, Stage};

/// The ends of each test.
const ENDS: u64 = 120;

fn lose_nothing(stage: &str) {
    let stage = Stage::named(stage).expect("a stage");
    let all = Batch { seed: 1, count: ENDS, stage, way: None }.run();
    assert!(all.failures.is_empty(), "{}", all.failures.join("\n"));
    assert_eq!(all.ends, ENDS);
    // Each way has had its turn, and the limits have kept records out.
    assert_eq!(all.ways.len(), 24, "{:?}", all.ways);
    // How many of these a trace can still report depends on how far its process came.
    assert!(all.calls > 10 * ENDS && all.stated + all.unstated > 0, "{all:?}");
}

fn finds_exactly_what_was_planted(stage: &str) {
    let stage = Stage::named(stage).expect("a stage");
    let verdict = Crowd { processes: 16, threads: 4, cycles: 300, seed: 1, stage }.run();
    assert!(verdict.failures.is_empty(), "{}", verdict.failures.join("\n"));
    assert!(verdict.killed > 0, "{verdict:?}");
}

/// Two tests of each adapter and form, which run side by side.
macro_rules! on_stages {
    ($($name:ident: $stage:literal;)*) => {
        $(mod $name {
            use super::{finds_exactly_what_was_planted, lose_nothing};

            #[test]
            fn violent_ends_lose_nothing() {
                lose_nothing($stage);
            }

            #[test]
            fn a_crowd_is_judged_right() {
                finds_exactly_what_was_planted($stage);
            }
        })*
    };
}

on_stages! {
    on_v1_in_the_chrome_form: "v1-chrome";
    on_v1_in_the_binary_form: "v1-binary";
    on_v2_in_the_chrome_form: "v2-chrome";
    on_v2_in_the_binary_form: "v2-binary";
}
