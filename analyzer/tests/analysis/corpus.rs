//! Runs the checks of the fuzz targets on every kept corpus input and every seed, without the fuzzer.

#[path = "../../../fuzz/checks/binary.rs"]
mod binary;
#[path = "../../../fuzz/checks/judge.rs"]
mod judge;
#[path = "../../../fuzz/checks/report.rs"]
mod report;
#[path = "../../../fuzz/checks/trace.rs"]
mod trace;

use std::{fs, path::Path};

/// Checks all inputs of a target. The panic message names the input that fails.
fn check_all(target: &str, check: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let folders = ["seeds", "corpus"].map(|kind| root.join(kind).join(target));
    let inputs = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let inputs: Vec<_> = inputs.map(|entry| entry.unwrap().path()).collect();
    assert!(inputs.len() > 2, "too few inputs in {folders:?}");
    for path in inputs {
        let bytes = fs::read(&path).unwrap();
        let caught = std::panic::catch_unwind(|| check(&bytes));
        assert!(caught.is_ok(), "{} fails", path.display());
    }
}

#[test]
fn every_kept_trace_passes_the_fuzz_check() {
    check_all("trace", trace::check);
}

#[test]
fn every_kept_binary_trace_passes_the_fuzz_check() {
    check_all("binary", binary::check);
}

#[test]
fn every_kept_run_passes_the_fuzz_check() {
    check_all("judge", judge::check);
}

#[test]
fn every_kept_report_passes_the_fuzz_check() {
    check_all("report", report::check);
}
