//! What fuzzing has found worth keeping, without the fuzzer: every input of the kept corpus and every seed is judged as there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

#[path = "../../fuzz/checks/judge.rs"]
mod judge;
#[path = "../../fuzz/checks/report.rs"]
mod report;
#[path = "../../fuzz/checks/trace.rs"]
mod trace;

use std::{fs, path::Path};

/// Checks all inputs of a target, and says which one fails.
fn check_all(target: &str, check: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let folders = ["seeds", "corpus"].map(|kind| root.join(kind).join(target));
    let inputs = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let inputs: Vec<_> = inputs.map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() > 2, "there is next to nothing in {folders:?}");
    for path in inputs {
        let bytes = fs::read(&path).unwrap();
        let caught = std::panic::catch_unwind(|| check(&bytes));
        assert!(caught.is_ok(), "{} fails", path.display());
    }
}

#[test]
fn every_kept_input_of_the_reader_is_read() {
    check_all("trace", trace::check);
}

#[test]
fn every_kept_run_is_judged_or_refused() {
    check_all("judge", judge::check);
}

#[test]
fn every_kept_report_is_merged_or_refused() {
    check_all("report", report::check);
}
