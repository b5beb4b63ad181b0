//! The directory for the traces of a run, and which files in it belong to this run.
//!
//! Existing files must not be touched. The header of a trace contains the name of its run, because several runs may
//! write to one directory, also at the same time. Files of other users are not of this run, whatever they contain.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use urscope_analyzer::Options;
use urscope_analyzer::analysis::{header_of, is_running};
use urscope_analyzer::files::{Folder, owners};
use urscope_schema::trace::{Form, process_times::FILE, writer_of};

use super::job::Job;
use crate::{input::HOME, shell::quoted, view, view::Subject};

#[derive(Clone, Debug)]
pub(crate) struct Traces {
    pub(crate) folder: Folder,
    /// The name of the run, which the headers of its traces contain. Only its processes know it: no other user can make
    /// a trace of it.
    pub(crate) run: String,
    before: HashSet<OsString>,
    /// Those of them whose processes were running.
    running: HashSet<OsString>,
    unnamed: bool,
    made: bool,
}

impl Traces {
    /// Creates the directory if necessary, and checks that it can be written. The ranks of a job share it.
    pub(crate) fn prepare(asked: Option<&Path>, program: &Path, job: Option<&Job>) -> Result<Self, String> {
        let unnamed = asked.is_none();
        let home = absolute(Path::new(HOME));
        let at = match (asked, job) {
            (Some(folder), _) => absolute(folder),
            (None, Some(job)) => home.join(format!("{}-job-{}", plain_name(program), job.name)),
            (None, None) => home.clone(),
        };
        let failed = |error| unusable(&at, &error);
        let (mut folder, mut made) = Folder::make(&at).map_err(failed)?;
        if unnamed && job.is_none() {
            folder.refuse_foreign(false).map_err(failed)?;
            (folder, made) = (new_folder(&folder, &plain_name(program)).map_err(failed)?, true);
        }
        let run = view::word().map_err(failed)?;
        let mut traces =
            Self { folder, run, before: HashSet::new(), running: HashSet::new(), unnamed, made: made || unnamed };
        traces.check().inspect_err(|_| traces.tidy()).map_err(failed)?;
        traces.before = names_in(&traces.folder).map_err(failed)?.into_iter().collect();
        let runs =
            |name: &&OsString| name.to_str().and_then(writer_of).is_some_and(|(pid, start)| is_running(pid, start));
        traces.running = traces.before.iter().filter(runs).cloned().collect();
        Ok(traces)
    }

    /// Checks that this user can write to the directory, and that nobody else can replace it.
    fn check(&self) -> io::Result<()> {
        self.folder.refuse_foreign(true)?;
        writable(&self.folder.by_descriptor())
    }

    /// The absolute path of the directory, because the program may change its working directory.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The directory relative to the current one, for messages.
    pub(crate) fn shown(&self) -> &Path {
        let here = std::env::current_dir().unwrap_or_default();
        match self.path().strip_prefix(here) {
            Ok(below) if below.as_os_str().is_empty() => Path::new("."),
            Ok(below) => below,
            Err(_) => self.path(),
        }
    }

    /// The run as one that a page shows.
    pub(crate) fn subject(&self, options: Options) -> Subject {
        let traces = self.clone();
        Subject {
            title: self.shown().display().to_string(),
            watched: vec![self.path().to_owned()],
            paths: Box::new(move || traces.of_this_run()),
            again: format!("urscope view {}", quoted(self.path())),
            options,
        }
    }

    /// The traces of this run. A new file without a readable header also belongs to it: a process may have died early,
    /// and a damaged trace must not be ignored silently. It is an error if another directory has taken the place of
    /// this one.
    pub(crate) fn of_this_run(&self) -> io::Result<Vec<PathBuf>> {
        self.in_place()?;
        // Nobody else knows the name of this run, and a program of root may continue as another user.
        let is_ours = |name: &OsString| match header_of(&self.path().join(name)) {
            Some(header) => {
                let may_be_of = |owner| owners().have(owner) || owners().user == 0;
                header.run == self.run && self.folder.has_file_of(Path::new(name), may_be_of)
            }
            None => {
                !self.before.contains(name) && self.folder.has_file_of(Path::new(name), |owner| owners().have(owner))
            }
        };
        let mut names = names_in(&self.folder)?;
        names.retain(is_ours);
        names.sort();
        Ok(names.iter().map(|name| self.path().join(name)).collect())
    }

    /// The names of other runs of this user that wrote traces into the directory during this one.
    pub(crate) fn beside(&self) -> Vec<String> {
        let mut names = names_in(&self.folder).unwrap_or_default();
        names.retain(|name| !self.before.contains(name) || self.running.contains(name));
        names.retain(|name| self.folder.has_file_of(Path::new(name), |owner| owners().have(owner)));
        let runs = names.into_iter().filter_map(|name| Some(header_of(&self.path().join(name))?.run));
        runs.filter(|run| *run != self.run).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Checks that the directory is still at its path.
    pub(crate) fn in_place(&self) -> io::Result<()> {
        let moved = || io::Error::other("it was moved or replaced while the program ran, so traces may be missing");
        if self.folder.is_in_place() { Ok(()) } else { Err(moved()) }
    }

    /// Whether traces have been added to the directory, by this run or by another one at the same time.
    pub(crate) fn has_new(&self) -> bool {
        names_in(&self.folder).is_ok_and(|names| names.iter().any(|name| !self.before.contains(name)))
    }

    /// Removes the directories that were created for this run if they hold no trace.
    pub(crate) fn tidy(&self) {
        let is_only_observed = || self.folder.names().is_ok_and(|names| names == [FILE]);
        if self.made && is_only_observed() {
            drop(self.folder.remove_file(FILE));
        }
        if self.made && fs::remove_dir(self.path()).is_ok() && self.unnamed {
            drop(self.path().parent().map(fs::remove_dir));
        }
    }
}

/// The error that a directory cannot have the traces.
pub(super) fn unusable(folder: &Path, why: &io::Error) -> String {
    format!("the directory for the traces, {}, cannot be used: {why}; name another one with --dir", folder.display())
}

pub(crate) fn writable(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// The names of a directory that are those of traces.
fn names_in(folder: &Folder) -> io::Result<Vec<OsString>> {
    let mut names = folder.names()?;
    names.retain(|name| name.to_str().and_then(|name| Form::split(name)).is_some());
    Ok(names)
}

/// Creates the directory `<home>/<program>-<N>` with the next free number.
fn new_folder(home: &Folder, program: &str) -> io::Result<Folder> {
    let number_of = |name: &OsStr| name.to_str()?.strip_prefix(program)?.strip_prefix('-')?.parse::<u64>().ok();
    let mut number = home.names()?.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
    loop {
        number = number.saturating_add(1);
        match home.make_below(&format!("{program}-{number}")) {
            // Another run created it at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u64::MAX => {}
            made => return made,
        }
    }
}

/// The name of a program, with all characters replaced that would have to be quoted.
fn plain_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    name.chars().take(64).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use urscope_schema::trace::records::Header;

    use super::*;

    fn write_header(folder: &Path, file: &str, run: &str) -> PathBuf {
        let path = folder.join(file);
        let header = Header { format: 1, run: run.into(), ..Header::default() };
        let args = serde_json::to_string(&header).unwrap();
        let text = format!("[\n{{\"ph\":\"M\",\"name\":\"urscope_header\",\"pid\":1,\"args\":{args}}}\n]\n");
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn only_the_traces_of_this_run_are_analyzed() {
        let folder = tempfile::tempdir().unwrap();
        write_header(folder.path(), "urscope-a-1-1.json", "an-earlier-run");
        fs::write(folder.path().join("urscope-b-2-2.json"), "torn long ago").unwrap();

        let traces = Traces::prepare(Some(folder.path()), Path::new("app"), None).unwrap();
        let ours = write_header(folder.path(), "urscope-a-3-3.json", &traces.run);
        write_header(folder.path(), "urscope-a-4-4.json", "a-run-at-the-same-time");
        let damaged = folder.path().join("urscope-b-5-5.json");
        fs::write(&damaged, "[\n{\"ph\":").unwrap();
        fs::write(folder.path().join("notes.json"), "{}").unwrap();
        assert_eq!(traces.of_this_run().unwrap(), [ours, damaged]);
    }

    #[test]
    fn each_run_without_a_named_directory_gets_a_new_one() {
        let home = tempfile::tempdir().unwrap();
        let home = Folder::open(home.path()).unwrap();
        let new = |program| new_folder(&home, program).unwrap().path().file_name().unwrap().to_owned();
        assert_eq!(new("app"), "app-1");
        assert_eq!(new("app"), "app-2");
        fs::create_dir(home.path().join("app-9")).unwrap();
        assert_eq!(new("app"), "app-10");
        assert_eq!(new("other"), "other-1");
    }

    #[test]
    fn a_directory_that_stays_empty_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let asked = root.path().join("made");
        let traces = Traces::prepare(Some(&asked), Path::new("app"), None).unwrap();
        assert!(asked.is_dir());
        traces.tidy();
        assert!(!asked.exists());

        let traces = Traces::prepare(Some(root.path()), Path::new("app"), None).unwrap();
        traces.tidy();
        assert!(root.path().exists(), "it existed before");
    }

    #[test]
    fn a_path_below_a_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Traces::prepare(Some(&file.path().join("traces")), Path::new("app"), None).unwrap_err();
        assert!(error.contains("--dir"), "{error}");
    }

    #[test]
    fn a_name_needs_no_quotes() {
        assert_eq!(plain_name(Path::new("/opt/my app's")), "my_app_s");
    }
}
