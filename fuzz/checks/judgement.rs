//! What holds for the judgement of any files: it can be shown, and shows nothing that a terminal would obey.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tempfile::TempDir;
use urscope_analyzer::{Judgement, Options, Verdict, judge, report};

/// In memory, as thousands of runs are written each second.
pub(crate) static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let place = Path::new("/dev/shm");
    if place.is_dir() { TempDir::new_in(place) } else { TempDir::new() }.expect("a temporary folder")
});

/// Checks the judgement of these files.
pub(crate) fn check_files(paths: &[PathBuf]) {
    match judge(paths, &Options::default()) {
        Ok(judgement) => show(&judgement),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn show(judgement: &Judgement) {
    let calls: u64 = judgement.calls.values().sum();
    assert!(calls > 0 || judgement.verdict == Verdict::NotJudged, "nothing was seen, and it is called judged");
    assert_eq!(judgement.exit, judgement.verdict.exit_code());
    let mut text = Vec::new();
    let mut json = Vec::new();
    report::text(judgement, &mut text, false).expect("memory can be written");
    let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
    assert!(!text.iter().any(control), "a control character reaches the terminal");
    report::json(judgement, &mut json).expect("memory can be written");
}
