//! The judge as a whole: the files of a run, whatever they hold, are judged or refused, and what is said can be shown.
//!
//! An input is the files, with a separator byte between them.

use std::{fs, path::PathBuf};

use crate::judgement;

/// The record separator of ASCII, which no trace holds.
const SEPARATOR: u8 = 0x1e;
/// How many files are judged together at most.
const FILES: usize = 4;

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let paths: Vec<PathBuf> = data
        .split(|byte| *byte == SEPARATOR)
        .take(FILES)
        .enumerate()
        .map(|(number, bytes)| {
            let path = judgement::FOLDER.path().join(format!("urscope-a-{number}-1.json"));
            fs::write(&path, bytes).expect("a file in memory is written");
            path
        })
        .collect();
    judgement::check_files(&paths);
}
