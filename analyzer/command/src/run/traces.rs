//! The directory for the traces of a run, and which files in it belong to this run.
//!
//! Existing files must not be touched. The header of a trace contains the name of its run, because several runs may write to one
//! directory, also at the same time.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use urscope_analyzer::analysis::header_of;
use urscope_schema::trace::Form;

use super::{error::RunError, job::Job};
use crate::input::HOME;

/// The directory of a run's traces.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    folder: PathBuf,
    run: String,
    before: HashSet<OsString>,
    unnamed: bool,
    made: bool,
}

impl Traces {
    /// Creates the directory if necessary, and checks that it can be written. The ranks of a job share it.
    pub(crate) fn prepare(asked: Option<&Path>, program: &Path, job: Option<&Job>) -> Result<Self, RunError> {
        let unnamed = asked.is_none();
        let home = absolute(Path::new(HOME));
        let (folder, made) = match (asked, job) {
            (Some(folder), _) => (absolute(folder), !folder.exists()),
            (None, Some(job)) => (home.join(format!("{}-job-{}", plain_name(program), job.name)), true),
            (None, None) => (new_folder(&home, &plain_name(program))?, true),
        };
        let failed = |source| RunError::Traces { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        writable(&folder).map_err(failed)?;
        safe(&folder).map_err(failed)?;
        let before = files_in(&folder).map_err(failed)?.iter().filter_map(name).collect();
        let run = job.map_or_else(run_name, |job| format!("job-{}", job.name));
        Ok(Self { folder, run, before, unnamed, made })
    }

    /// The absolute path of the directory, because the program may change its working directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The directory relative to the current one, for messages.
    pub(crate) fn shown(&self) -> &Path {
        let here = std::env::current_dir().unwrap_or_default();
        match self.folder.strip_prefix(here) {
            Ok(below) if below.as_os_str().is_empty() => Path::new("."),
            Ok(below) => below,
            Err(_) => &self.folder,
        }
    }

    /// The name of the run, which the headers of its traces contain.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// The traces of this run. A new file without a readable header also belongs to it: a process may have died early, and a
    /// damaged trace must not be ignored silently.
    pub(crate) fn of_this_run(&self) -> io::Result<Vec<PathBuf>> {
        let ours = |path: &PathBuf| match header_of(path) {
            Some(header) => header.run == self.run,
            None => name(path).is_some_and(|name| !self.before.contains(&name)),
        };
        let mut files = files_in(&self.folder)?;
        files.retain(ours);
        files.sort();
        Ok(files)
    }

    /// Whether traces have been added to the directory, by this run or by another one at the same time.
    pub(crate) fn has_new(&self) -> bool {
        let is_new = |path: &PathBuf| name(path).is_some_and(|name| !self.before.contains(&name));
        files_in(&self.folder).is_ok_and(|files| files.iter().any(is_new))
    }

    /// Removes the directories that were created for this run if they are empty.
    pub(crate) fn tidy(&self) {
        if self.made && fs::remove_dir(&self.folder).is_ok() && self.unnamed {
            drop(self.folder.parent().map(fs::remove_dir));
        }
    }
}

/// Checks whether files can be created in a directory.
pub(crate) fn writable(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

/// Checks what the library checks before it writes a trace: nobody but this user and root can replace the files of the directory.
fn safe(folder: &Path) -> io::Result<()> {
    let known = fs::metadata(folder)?;
    let is_ours = known.uid() == rustix::process::geteuid().as_raw() || known.uid() == 0;
    if is_ours || known.mode() & STICKY != 0 {
        return Ok(());
    }
    let why = format!("it belongs to the user {}, who could replace the traces in it", known.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The bit of a directory in which everyone can remove only their own files.
const STICKY: u32 = 0o1000;

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

fn name(path: impl AsRef<Path>) -> Option<OsString> {
    path.as_ref().file_name().map(Into::into)
}

/// The files of a directory whose names are those of traces.
fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(|name| Form::split(name)).is_some() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Creates the directory `<home>/<program>-<N>` with the next free number.
fn new_folder(home: &Path, program: &str) -> Result<PathBuf, RunError> {
    let failed = |source| RunError::Traces { path: home.into(), source };
    fs::create_dir_all(home).map_err(failed)?;
    let numbers = fs::read_dir(home).map_err(failed)?.filter_map(|entry| {
        entry.ok()?.file_name().to_str()?.strip_prefix(program)?.strip_prefix('-')?.parse::<u64>().ok()
    });
    let mut number = numbers.max().unwrap_or(0);
    loop {
        number = number.saturating_add(1);
        let folder = home.join(format!("{program}-{number}"));
        match fs::create_dir(&folder) {
            // Another run created it at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u64::MAX => {}
            Err(source) => return Err(RunError::Traces { path: folder, source }),
            Ok(()) => return Ok(folder),
        }
    }
}

/// The name of a program, with all characters replaced that would have to be quoted.
fn plain_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    name.chars().take(64).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// A unique name of a run: the current time and the process number.
fn run_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), process::id())
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
        let ours = write_header(folder.path(), "urscope-a-3-3.json", traces.run());
        write_header(folder.path(), "urscope-a-4-4.json", "a-run-at-the-same-time");
        let damaged = folder.path().join("urscope-b-5-5.json");
        fs::write(&damaged, "[\n{\"ph\":").unwrap();
        fs::write(folder.path().join("notes.json"), "{}").unwrap();
        assert_eq!(traces.of_this_run().unwrap(), [ours, damaged]);
    }

    #[test]
    fn each_run_without_a_named_directory_gets_a_new_one() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().join(HOME);
        assert_eq!(new_folder(&home, "app").unwrap(), home.join("app-1"));
        assert_eq!(new_folder(&home, "app").unwrap(), home.join("app-2"));
        fs::create_dir(home.join("app-9")).unwrap();
        assert_eq!(new_folder(&home, "app").unwrap(), home.join("app-10"));
        assert_eq!(new_folder(&home, "other").unwrap(), home.join("other-1"));
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
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--dir"), "{error}");
    }

    #[test]
    fn a_name_needs_no_quotes() {
        assert_eq!(plain_name(Path::new("/opt/my app's")), "my_app_s");
        assert_ne!(run_name(), "");
    }
}
