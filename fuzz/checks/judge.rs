//! The judge as a whole: the files of a run, whatever they hold, are judged or refused, and what is said can be shown.
//!
//! An input is the files, with a separator byte between them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use tempfile::TempDir;
use urscope_analyzer::{Judgement, Options, Verdict, judge, report};

/// The record separator of ASCII, which no trace holds.
const SEPARATOR: u8 = 0x1e;
/// How many files are judged together at most.
const FILES: usize = 4;

/// In memory, as thousands of runs are written each second.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let place = Path::new("/dev/shm");
    if place.is_dir() { TempDir::new_in(place) } else { TempDir::new() }.expect("a temporary folder")
});

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let paths: Vec<PathBuf> = data
        .split(|byte| *byte == SEPARATOR)
        .take(FILES)
        .enumerate()
        .map(|(number, bytes)| {
            let path = FOLDER.path().join(format!("urscope-a-{number}-1.json"));
            fs::write(&path, bytes).expect("a file in memory is written");
            path
        })
        .collect();
    match judge(&paths, &Options::default()) {
        Ok(judgement) => show(&judgement),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn show(judgement: &Judgement) {
    let calls: u64 = judgement.calls.values().sum();
    assert!(calls > 0 || judgement.verdict == Verdict::NotJudged, "nothing was seen, and it is called judged");
    assert_eq!(judgement.exit, judgement.verdict.exit_code());
    let (mut text, mut json) = (Vec::new(), Vec::new());
    report::text(judgement, &mut text, false).expect("memory can be written");
    let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
    assert!(!text.iter().any(control), "a control character reaches the terminal");
    report::json(judgement, &mut json).expect("memory can be written");
}
