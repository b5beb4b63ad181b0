//! A device reports as shareable what the chosen backend can share on it, for each release, adapter and backend.

use urscope_tests::{Adapter, Release, TestRun};

use Adapter::{V1, V2};
use Release::{R2025_3, R2026_0, R2026_1, R2026_2};

/// The adapter does not know the query.
const UNKNOWN: &str = "54";
const YES: &str = "0 yes";
const NO: &str = "0 no";

/// The answers about memory, physical memory, reusable events and shared events.
///
/// v1 shares no events with any backend: in that adapter, an event that was complete once stays complete.
#[rustfmt::skip]
const CELLS: [(Release, Adapter, &str, [&str; 4]); 24] = [
    (R2026_2, V2, "adapter",    [YES, YES, YES, YES]),
    (R2026_2, V2, "auto",       [YES, YES, YES, YES]),
    (R2026_2, V2, "level_zero", [YES, YES, YES, YES]),
    (R2026_2, V1, "adapter",    [YES, NO,  NO,  NO]),
    (R2026_2, V1, "auto",       [YES, NO,  NO,  NO]),
    (R2026_2, V1, "level_zero", [YES, YES, NO,  NO]),
    (R2026_1, V2, "adapter",    [YES, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2026_1, V2, "auto",       [YES, YES, YES, YES]),
    (R2026_1, V2, "level_zero", [YES, YES, YES, YES]),
    (R2026_1, V1, "adapter",    [YES, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2026_1, V1, "auto",       [YES, YES, NO,  NO]),
    (R2026_1, V1, "level_zero", [YES, YES, NO,  NO]),
    (R2026_0, V2, "adapter",    [YES, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2026_0, V2, "auto",       [YES, YES, YES, YES]),
    (R2026_0, V2, "level_zero", [YES, YES, YES, YES]),
    (R2026_0, V1, "adapter",    [YES, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2026_0, V1, "auto",       [YES, YES, NO,  NO]),
    (R2026_0, V1, "level_zero", [YES, YES, NO,  NO]),
    (R2025_3, V2, "adapter",    [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2025_3, V2, "auto",       [YES, YES, YES, YES]),
    (R2025_3, V2, "level_zero", [YES, YES, YES, YES]),
    (R2025_3, V1, "adapter",    [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]),
    (R2025_3, V1, "auto",       [YES, YES, NO,  NO]),
    (R2025_3, V1, "level_zero", [YES, YES, NO,  NO]),
];

#[test]
fn a_device_says_what_the_backend_can_do() {
    for (release, adapter, backend, [memory, physical, reusable, events]) in CELLS {
        let cell = TestRun::new("ur_support", release, adapter).env("URSCOPE_BACKEND", backend).option("--no-check");
        let outcome = cell.run();
        // What is reported as unsupported is refused: UR_RESULT_ERROR_UNSUPPORTED_FEATURE.
        let answer = if events == YES { 0 } else { 44 };
        let expected = format!(
            "memory: {memory}\nphysical memory: {physical}\nreusable events: {reusable}\nevents: {events}\n\
             an event: {answer}, its get: {answer}, its open: {answer}\n"
        );
        let context = format!("{release:?} {adapter:?} {backend}: {}", outcome.stderr);
        assert_eq!((outcome.code, outcome.stdout), (0, expected), "{context}");
    }
}
