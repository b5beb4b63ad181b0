//! A process may be killed between any two of the stores that write a record of the Chrome form. Perfetto loads what is
//! left each time.

use std::{fs, path::PathBuf};

use urscope_tests::{Adapter, Release, TestRun, perfetto, run};

/// Records are stored in steps of so many bytes, counted from their separator (`schema/src/trace/FORMAT.md`).
const STEP: usize = 8;

/// How many spaces follow, as in the unwritten rest of a file.
const SPACES: usize = 4096;

#[test]
fn a_record_torn_at_any_store_costs_only_itself() {
    let outcome = TestRun::new("clean", Release::R2026_2, Adapter::V2).env("URSCOPE_FORMAT", "chrome").run();
    let trace = outcome.trace_files().remove(0);
    let text = fs::read(&trace).expect("a trace");
    let folder = tempfile::tempdir().expect("no temporary folder");

    // The begin and end records of all calls: the position of the point of `ts` in a step differs between them.
    let starts = |record: &[u8]| -> Vec<usize> {
        (0..text.len()).filter(|at| text[*at..].starts_with(record)).map(|at| at - 2).collect()
    };
    let begins = starts(b"{\"ph\":\"B\"");
    let ends = starts(b"{\"ph\":\"E\"");
    let mut torn: Vec<PathBuf> = Vec::new();
    for start in begins.iter().chain(&ends).copied() {
        let line = text[start + 1..].iter().position(|byte| *byte == b'\n').expect("a line behind every record") + 1;
        for cut in (start..start + line).step_by(STEP) {
            let mut left = text[..cut].to_vec();
            left.resize(cut + SPACES, b' ');
            let file = folder.path().join(format!("torn-at-{cut}.json"));
            fs::write(&file, left).expect("no file for a torn trace");
            torn.push(file);
        }
    }
    assert!(torn.len() > 100, "only {} places to tear", torn.len());
    // Loading takes a while, so this is a sample of the places, at a different offset in each record. The analyzer's
    // own tests read a trace that ends at any byte.
    let spread: Vec<PathBuf> = torn.iter().step_by(torn.len() / 60).cloned().collect();
    for opinion in perfetto::opinions(&spread, &[]) {
        opinion.assert_ok();
    }
    for file in spread {
        let judged = run::urscope(&["check", "--format", "json", file.to_str().expect("a path in UTF-8")]);
        assert!(judged.code != 101 && judged.stderr.is_empty(), "{}: {}", file.display(), judged.stderr);
    }
}
