//! Finds the trace files.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use urscope_schema::trace::Form;

use crate::AnalysisError;

/// The trace files that `paths` name or that directories in `paths` contain, without duplicates.
pub fn traces(paths: &[PathBuf]) -> Result<Vec<PathBuf>, AnalysisError> {
    let (mut files, mut seen) = (Vec::new(), HashSet::new());
    for path in paths {
        let unreadable = |source| AnalysisError::Unreadable { path: path.clone(), source };
        let kind = fs::metadata(path).map_err(unreadable)?.file_type();
        let held = if kind.is_dir() { inside(path).map_err(unreadable)? } else { vec![path.clone()] };
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

fn inside(folder: &Path) -> io::Result<Vec<PathBuf>> {
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
