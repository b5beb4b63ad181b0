//! The merged trace of a run: one Chrome trace of all its processes, beside their traces, for Perfetto.
//!
//! It is what `urscope export` writes. It must not change the verdict. Existing files are never replaced or followed,
//! and an incomplete file never remains.

use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use urscope_analyzer::analysis::CallSites;
use urscope_analyzer::{AnalysisError, Judgement, Options, files::Folder};

use crate::export::{self, ExportError, Form};
use crate::{output::analyze_watched, shell::quoted};

/// The most calls and processes of a run that gets a merged trace. It is drawn by a second analysis, and takes about
/// 750 bytes and 4 µs for a call, so a larger one would keep the user waiting.
pub(crate) const CALL_LIMIT: u64 = 100_000;
const PROCESS_LIMIT: usize = 1000;

/// How many bytes the merged trace must leave free on its file system.
const RESERVE: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) enum Merged {
    Nothing,
    Unreadable,
    /// Nobody asked for it: the traces are not analyzed.
    NotAsked,
    Written(PathBuf),
    TooLarge,
    Failed(io::Error),
}

/// Analyzes the traces of a run, and writes its merged trace into `folder` if it has no more than `limit` calls. An
/// error is that of the analysis.
pub(crate) fn analyze_and_merge(
    files: &[PathBuf],
    options: &Options,
    folder: &Folder,
    limit: u64,
) -> Result<(Judgement, Merged), AnalysisError> {
    let mut analysis = analyze_watched(files, options)?;
    let sites = CallSites::agreeing_with(&mut analysis, options);
    let judgement = analysis.report().judgement(files, options);
    let merged = if judgement.processes.is_empty() {
        // Perfetto refuses a timeline without any process.
        Merged::Unreadable
    } else if judgement.calls.values().sum::<u64>() > limit || judgement.processes.len() > PROCESS_LIMIT {
        Merged::TooLarge
    } else {
        merge(files, options, folder, &judgement, sites).map_or_else(Merged::Failed, Merged::Written)
    };
    Ok((judgement, merged))
}

/// Draws the merged trace, with the findings and the call sites of an analysis.
fn merge(
    files: &[PathBuf],
    options: &Options,
    folder: &Folder,
    judgement: &Judgement,
    sites: CallSites,
) -> io::Result<PathBuf> {
    // Only the owner can read such a file, as is the case with traces.
    let file = Builder::new().prefix(".urscope-merged-").tempfile_in(folder.by_descriptor())?;
    let mut out = BufWriter::with_capacity(1 << 16, file.as_file());
    let drawn = export::draw(files, options, Form::Chrome, &mut out, judgement, sites);
    drawn.map_err(|error| match error {
        ExportError::Write(error) => error,
        other => io::Error::other(other),
    })?;
    out.flush()?;
    drop(out);
    leaves_room(&file)?;
    keep(file, folder)
}

/// Checks that the file system has room for what a run writes after the merged trace, such as its reports.
fn leaves_room(file: &NamedTempFile) -> io::Result<()> {
    let system = rustix::fs::fstatvfs(file)?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free >= RESERVE { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
}

/// Gives the file the first name that is not taken.
fn keep(mut file: NamedTempFile, folder: &Folder) -> io::Result<PathBuf> {
    for name in names() {
        match file.persist_noclobber(folder.by_descriptor().join(&name)) {
            Ok(_) => return Ok(folder.path().join(name)),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The names for a merged trace, in the order in which they are used. None of them is that of a trace.
fn names() -> impl Iterator<Item = String> {
    let others = (1..=u32::MAX).map(|number| format!("merged-{number}.json"));
    ["merged.json".to_owned()].into_iter().chain(others)
}

/// The line that tells a user where the traces of a run are, and its merged trace.
#[derive(Debug)]
pub(crate) struct TracePlace<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) merged: &'a Merged,
}

impl TracePlace<'_> {
    /// Whether a user must see the line in any case.
    pub(crate) fn is_a_problem(&self) -> bool {
        matches!(self.merged, Merged::Failed(_))
    }

    /// The command that writes the merged trace into the directory.
    fn command(&self) -> String {
        let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
        let free = names().map(|name| self.folder.join(name)).find(is_free).unwrap_or_default();
        format!("urscope export {} -o {}", quoted(self.folder), quoted(&free))
    }
}

impl fmt::Display for TracePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        match self.merged {
            Merged::Nothing => write!(f, "there are no traces in {folder}"),
            Merged::Unreadable => {
                write!(f, "the traces are in {folder}; no merged trace was written, because they cannot be analyzed")
            }
            Merged::NotAsked => write!(
                f,
                "the traces are in {folder}; `urscope check {}` analyzes them, and `{}` merges them for \
                 https://ui.perfetto.dev",
                quoted(self.folder),
                self.command()
            ),
            Merged::Written(path) => write!(
                f,
                "the traces are in {folder}; open {} with https://ui.perfetto.dev, or analyze the traces again with \
                 `urscope check {}`",
                path.file_name().map(|name| self.folder.join(name)).unwrap_or_default().display(),
                quoted(self.folder)
            ),
            Merged::TooLarge => write!(
                f,
                "the traces are in {folder}; the run is large: `{}` merges them for https://ui.perfetto.dev",
                self.command()
            ),
            Merged::Failed(error) => write!(
                f,
                "the traces are in {folder}, but the merged trace cannot be written there: {error}; \
                 `urscope export {} -o FILE` writes it elsewhere",
                quoted(self.folder)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use urscope_analyzer::{Verdict, analysis::traces};
    use urscope_schema::trace::records::Header;

    use super::*;

    /// A directory with the trace of a process that ended normally.
    fn run() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let header = serde_json::to_string(&Header { format: 1, pid: 7, ..Header::default() }).unwrap();
        let record = |name, args: &str| format!(r#"{{"ph":"M","name":"{name}","pid":7,"tid":7,"args":{args}}}"#);
        let enter = r#"{"ph":"B","pid":7,"tid":7,"ts":1.000,"cat":"api","name":"urUSMDeviceAlloc","args":{"call":1}}"#;
        let exit = r#"{"ph":"E","pid":7,"tid":7,"ts":2.000,"cat":"api","name":"urUSMDeviceAlloc","args":{"call":1,"result":0}}"#;
        let lines = [record("urscope_header", &header), enter.into(), exit.into(), record("urscope_footer", "{}")];
        let path = folder.path().join("urscope-app-7-1.json");
        fs::write(&path, format!("[\n{}\n]", lines.join("\n,"))).unwrap();
        (folder, vec![path])
    }

    fn merge(folder: &Path, files: &[PathBuf], limit: u64) -> (Judgement, Merged) {
        analyze_and_merge(files, &Options::default(), &Folder::open(folder).unwrap(), limit).unwrap()
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn line(folder: &Path, merged: &Merged) -> String {
        TracePlace { folder, merged }.to_string()
    }

    #[test]
    fn the_merged_trace_is_private_complete_and_not_a_trace_of_a_process() {
        let (folder, files) = run();
        let (_, merged) = merge(folder.path(), &files, CALL_LIMIT);
        let Merged::Written(path) = &merged else { panic!("{merged:?}") };
        assert_eq!(*path, folder.path().join("merged.json"));
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let drawn: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let calls = drawn["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        assert_eq!(calls.count(), 1);
        assert_eq!(traces(&[folder.path().into()]).unwrap(), files, "no reader of the directory takes it for a trace");
        assert!(line(folder.path(), &merged).contains("/merged.json with https://ui.perfetto.dev"));
    }

    #[test]
    fn a_large_run_leaves_no_file_and_names_the_command() {
        let (folder, files) = run();
        let (judgement, merged) = merge(folder.path(), &files, 0);
        assert!(matches!(merged, Merged::TooLarge), "{merged:?}");
        assert_eq!(names_in(folder.path()), ["urscope-app-7-1.json"]);
        assert_eq!(judgement, merge(folder.path(), &files, CALL_LIMIT).0, "the verdict is the same");
        let told = line(Path::new("my runs"), &merged);
        assert!(told.contains("`urscope export 'my runs' -o 'my runs/merged.json'`"), "{told}");
    }

    #[test]
    fn a_file_that_exists_is_never_replaced_or_followed() {
        let (folder, files) = run();
        let target = folder.path().join("notes.txt");
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("merged.json")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("merged-1.json")).unwrap();
        let (_, merged) = merge(folder.path(), &files, CALL_LIMIT);
        let Merged::Written(path) = merged else { panic!("{merged:?}") };
        assert_eq!(path, folder.path().join("merged-2.json"));
        assert_eq!(fs::read_to_string(target).unwrap(), "mine");
        assert!(line(folder.path(), &Merged::TooLarge).contains("/merged-3.json`"));
    }

    #[test]
    fn a_directory_that_cannot_be_written_does_not_change_the_verdict() {
        let (folder, files) = run();
        let before = merge(folder.path(), &files, CALL_LIMIT).0;
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let held = Folder::open(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        let (judgement, merged) = analyze_and_merge(&files, &Options::default(), &held, CALL_LIMIT).unwrap();
        assert_eq!(judgement, before);
        assert!(matches!(merged, Merged::Failed(_)), "{merged:?}");
        let told = TracePlace { folder: &gone, merged: &merged };
        assert!(told.is_a_problem() && told.to_string().contains("No such file or directory"), "{told}");
    }

    #[test]
    fn damaged_traces_have_no_merged_trace() {
        let (folder, files) = run();
        fs::write(&files[0], "garbage").unwrap();
        let listed = Options { listed: true, ..Options::default() };
        let (judgement, merged) =
            analyze_and_merge(&files, &listed, &Folder::open(folder.path()).unwrap(), CALL_LIMIT).unwrap();
        assert_eq!(judgement.verdict, Verdict::NotJudged);
        assert!(matches!(merged, Merged::Unreadable), "{merged:?}");
        assert_eq!(names_in(folder.path()), ["urscope-app-7-1.json"]);
    }
}
