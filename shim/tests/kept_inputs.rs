//! Runs the check of the fuzz target of handle data on every kept input, without the fuzzer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../fuzz/checks/handle_data.rs"]
mod handle_data;

use std::{fs, path::Path};

#[test]
fn every_kept_input_passes_the_fuzz_check() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    for kind in ["seeds", "corpus"] {
        let folder = root.join(kind).join("handle_data");
        let inputs: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "no inputs in {}", folder.display());
        for path in inputs {
            println!("{}", path.display());
            handle_data::check(&fs::read(&path).unwrap());
        }
    }
}
