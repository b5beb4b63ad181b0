//! Which traces a command reads: those that are named, those of one run, or those of the newest run.
//!
//! A directory without traces is refused with what is in it, so that no command answers "nothing" about an empty place.

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, env, error::Error, fs, os::unix::fs::MetadataExt as _};

use urscope_analyzer::analysis::{contents, header_of, runs_below, traces};
use urscope_analyzer::files::owners;
use urscope_schema::counted;

use crate::{arguments::TraceArguments, output::tell};

/// The parent of the directories of runs.
pub(crate) const HOME: &str = "urscope-traces";

/// The error that no traces are named, and there is no run.
pub(crate) const NOTHING: &str = "no traces are named, and there are none in urscope-traces; name a directory of traces, or start a \
                                  program with urscope run";

/// The traces that a command reads. Directories must have some, unless an `empty` one is an answer, too. An error says
/// what is there, and what to name instead.
pub(crate) fn chosen(arguments: &TraceArguments, empty: bool) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let paths = if arguments.paths.is_empty() {
        let newest = newest().ok_or(NOTHING)?;
        tell(format_args!("no traces are named, so these are those of the newest run, {}", newest.display()));
        vec![newest]
    } else {
        arguments.paths.clone()
    };
    if !empty {
        paths.iter().try_for_each(|path| refuse_without_traces(path))?;
    }
    match &arguments.run {
        Some(run) => of_run(&paths, run),
        None => Ok(paths),
    }
}

/// Refuses a directory without traces. Errors of reading are left to the analysis.
pub(crate) fn refuse_without_traces(path: &Path) -> Result<(), String> {
    let has_none = path.is_dir() && traces(&[path.to_owned()]).is_ok_and(|traces| traces.is_empty());
    if has_none {
        let contents = contents(path);
        let path = path.display();
        return Err(format!("{path} has no traces: {contents}; name a directory that `urscope run` wrote"));
    }
    Ok(())
}

/// Refuses a directory that holds only those of runs. One that is empty may be that of a run that has not begun yet.
pub(crate) fn refuse_a_parent(path: &Path) -> Result<(), String> {
    if runs_below(path).is_empty() { Ok(()) } else { refuse_without_traces(path) }
}

/// The traces of one run, which is given by its name or the beginning of it.
fn of_run(paths: &[PathBuf], run: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut runs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in traces(paths)? {
        if let Some(header) = header_of(&path) {
            runs.entry(header.run).or_default().push(path);
        }
    }
    let known = |runs: &BTreeMap<String, Vec<PathBuf>>| {
        let named = runs.iter().map(|(run, traces)| format!("{run:?} ({})", counted(traces.len(), "trace")));
        named.collect::<Vec<_>>().join(", ")
    };
    if let Some(traces) = runs.remove(run) {
        return Ok(traces);
    }
    let all = known(&runs);
    runs.retain(|name, _| name.starts_with(run));
    let several = known(&runs);
    match (runs.len(), runs.pop_first()) {
        (1, Some((_, traces))) => Ok(traces),
        (0, _) => Err(format!("no trace is of the run {run}; the runs there are {all}").into()),
        _ => Err(format!("{run} is the beginning of several runs: {several}; give more of the name").into()),
    }
}

/// The directory of the traces of the newest run: `$URSCOPE_DIR`, or the directory in `urscope-traces` that was changed
/// last, if they are of this user or of root.
pub(crate) fn newest() -> Option<PathBuf> {
    let named = env::var_os("URSCOPE_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let is_ours = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| owners().have(data.uid()));
    let home = Some(Path::new(HOME)).filter(|home| is_ours(home));
    let entries = || home.and_then(|home| fs::read_dir(home).ok()).into_iter().flatten().flatten();
    let folders = || entries().filter(|entry| entry.path().is_dir() && is_ours(&entry.path()));
    named.or_else(|| {
        folders().max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok()).map(|entry| entry.path())
    })
}
