//! Finds the trace files.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io, os::unix::fs::MetadataExt as _};

use urscope_schema::{counted, trace::Form};

use super::header_of;
use crate::{AnalysisError, files::owners, plain::plain};

/// The trace files that `paths` name or that directories in `paths` contain, without duplicates. If a directory has
/// traces of this user, those of other users in it are left out ([`of_others`]).
pub fn traces(paths: &[PathBuf]) -> Result<Vec<PathBuf>, AnalysisError> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        let unreadable = |source| AnalysisError::Unreadable { path: path.clone(), source };
        let kind = fs::metadata(path).map_err(unreadable)?.file_type();
        let held = if kind.is_dir() { inside(path).map_err(unreadable)?.0 } else { vec![path.clone()] };
        for file in held {
            let same = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if seen.insert(same) {
                files.push(file);
            }
        }
        if !kind.is_dir() && !kind.is_file() {
            let found = "it is neither a file nor a directory".to_owned();
            return Err(AnalysisError::NotATrace { path: path.clone(), found });
        }
    }
    Ok(files)
}

/// The trace files in these directories that are left out, because they are other users', and those.
pub(crate) fn of_others(paths: &[PathBuf]) -> Vec<(PathBuf, u32)> {
    let folders = paths.iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| inside(folder).unwrap_or_default().1);
    files
        .filter_map(|file| Some((fs::symlink_metadata(&file).ok()?.uid(), file)))
        .map(|(user, file)| (file, user))
        .collect()
}

/// The trace files in a directory: those that count, and those of other users. If there are none of this user, all
/// count, and also those of another user that belong to a run of this one, as a program of root may become another
/// user.
fn inside(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let is_own = |file: &PathBuf| fs::symlink_metadata(file).is_ok_and(|status| status.uid() == owners().user);
    let (own, others): (Vec<_>, Vec<_>) = all_inside(folder)?.into_iter().partition(is_own);
    if own.is_empty() || others.is_empty() {
        return Ok(([own, others].concat(), Vec::new()));
    }
    let run_of = |file: &PathBuf| header_of(file).map(|header| header.run).filter(|run| !run.is_empty());
    let runs: BTreeSet<String> = own.iter().filter_map(run_of).collect();
    let (joined, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|file| run_of(file).is_some_and(|run| runs.contains(&run)));
    let mut files = [own, joined].concat();
    files.sort();
    Ok((files, others))
}

fn all_inside(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if Form::split(&name).is_some() && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The directories of runs in a directory: those with traces, in the order of their names.
pub fn runs_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut runs: Vec<_> = folders.filter(|path| inside(path).is_ok_and(|(traces, _)| !traces.is_empty())).collect();
    runs.sort();
    runs
}

/// The number of directories or files that [`contents`] names.
const NAMED: usize = 8;

/// What a directory without traces has instead, as part of a message.
pub fn contents(folder: &Path) -> String {
    let listed = |paths: &[PathBuf]| {
        let names = paths.iter().take(NAMED).map(|path| plain(&path.file_name().unwrap_or_default().to_string_lossy()));
        let more = paths.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        names.chain(more).collect::<Vec<_>>().join(", ")
    };
    let runs = runs_below(folder);
    if !runs.is_empty() {
        let count = counted(runs.len(), "run");
        return format!("it is the directory of {count} ({})", listed(&runs));
    }
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    match entries.len() {
        0 => "it is empty".into(),
        count => format!(
            "it has {} ({}), and none is named urscope-*.json or *.fxt",
            counted(count, "file"),
            listed(&entries)
        ),
    }
}
