//! The lines of source around a place that a call stack names.
//!
//! A trace can name any file, and reports are published. So a file is shown only if all of this holds: it is below a
//! directory of the user's choice ([`Sources`]), also after symbolic links are followed; no part of its path below that
//! directory is hidden; its name ends like that of source; it is a regular file of a limited size, and text. No request
//! contains a path.

use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use crate::analysis::{Excerpt, FoundFinding, Frame, Judgement, ProcessSummary};
use crate::files;

/// How many lines the page shows before and after the place.
const AROUND: usize = 4;

/// How many lines reports show before and after it.
const AROUND_IN_REPORTS: usize = 2;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// The longest line that is shown, in characters.
const WIDEST: usize = 300;

const ENDINGS: [&str; 22] = [
    "c", "cc", "cpp", "cxx", "c++", "cu", "cl", "f", "f90", "h", "hh", "hip", "hpp", "hxx", "h++", "inc", "inl", "ipp",
    "jl", "py", "rs", "sycl",
];

/// The directories whose source files may be shown.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The current directory, in which a path must be as the stack names it.
    current: Option<PathBuf>,
    /// Directories that the user named. The end of a path is enough there, for traces of another machine.
    named: Vec<PathBuf>,
}

/// Why no source is shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSource {
    /// The stack has no line of source.
    #[error("no source line is known here; compile with -g")]
    Unknown,
    /// No directory contains it.
    #[error("its source is not below the directory in which urscope was started; --source DIR names another")]
    Elsewhere,
    /// It may not be shown.
    #[error("its file is not shown: {0}")]
    Refused(&'static str),
}

impl Sources {
    /// Files below the current directory, unless that is `/`, and below the directories that the user named.
    pub fn new(current: Option<&Path>, named: &[PathBuf]) -> Self {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let current = current.and_then(real).filter(|path| path.parent().is_some());
        Self { current, named: named.iter().filter_map(|path| real(path)).collect() }
    }

    /// The lines around a frame of a process.
    pub fn around(&self, frame: &Frame, process: Option<&ProcessSummary>) -> Result<Excerpt, NoSource> {
        let (file, line) = frame.file.as_deref().zip(frame.line).ok_or(NoSource::Unknown)?;
        self.lines(file, line, AROUND, process.and_then(began))
    }

    /// Adds the lines around the call sites of all findings that count, where there is source.
    pub fn add_to(&self, judgement: &mut Judgement) {
        let Judgement { processes, findings, .. } = judgement;
        for side in findings.iter_mut().filter(|found| found.excuse.is_none()).flat_map(FoundFinding::locations_mut) {
            let began = processes.iter().find(|process| side.is_in(process)).and_then(began);
            let place = side.call_site().and_then(|frame| frame.file.as_deref().zip(frame.line));
            side.excerpt = place.and_then(|(file, line)| self.lines(file, line, AROUND_IN_REPORTS, began).ok());
            let shown: Vec<Frame> = side.passed_frames().chain(side.call_site()).cloned().collect();
            for frame in side.stack.iter_mut().filter(|frame| shown.contains(frame)) {
                let line = frame.file.as_deref().zip(frame.line);
                let line = line.and_then(|(file, line)| self.lines(file, line, 0, began).ok());
                frame.source = line.and_then(|excerpt| Some(excerpt.lines.first()?.trim_end().to_owned()));
            }
        }
    }

    /// The lines around a place. `began` is when the process began.
    fn lines(&self, file: &str, line: u32, around: usize, began: Option<SystemTime>) -> Result<Excerpt, NoSource> {
        let path = self.find(Path::new(file))?;
        let (text, modified) = read(&path)?;
        let at = line as usize;
        let first = at.saturating_sub(around).max(1);
        let cut = |line: &str| line.replace('\t', "    ").chars().take(WIDEST).collect();
        let lines: Vec<String> = text.lines().skip(first - 1).take(at + around + 1 - first).map(cut).collect();
        if lines.len() <= at - first.min(at) {
            return Err(NoSource::Refused("it has fewer lines"));
        }
        let changed = began.zip(modified).is_some_and(|(began, modified)| modified > began);
        Ok(Excerpt { file: file.to_owned(), line, first: first as u32, lines, changed })
    }

    /// The file that is meant, without symbolic links.
    fn find(&self, file: &Path) -> Result<PathBuf, NoSource> {
        let mut found = Err(NoSource::Elsewhere);
        let in_current = self.current.iter().map(|root| (root, root.join(file)));
        let in_named = self.named.iter().flat_map(|root| ends(file).map(move |end| (root, root.join(end))));
        for (root, candidate) in in_current.chain(in_named) {
            // The path alone decides what is looked at: the file system is not asked about files elsewhere.
            if !candidate.starts_with(root) {
                continue;
            }
            let Ok(real) = fs::canonicalize(&candidate) else { continue };
            match real.strip_prefix(root) {
                Ok(below) => match showable(below) {
                    Ok(()) => return Ok(real),
                    refused => found = refused.map(|()| real),
                },
                Err(_) => found = Err(NoSource::Refused("a symbolic link leads elsewhere")),
            }
        }
        found
    }
}

/// When a process began.
fn began(process: &ProcessSummary) -> Option<SystemTime> {
    (process.realtime_ns > 0).then(|| UNIX_EPOCH + Duration::from_nanos(process.realtime_ns))
}

/// The path itself, and its ends, the longest first.
fn ends(file: &Path) -> impl Iterator<Item = PathBuf> {
    let parts: Vec<_> = file.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let tails: Vec<PathBuf> = (0..parts.len()).map(|at| parts.iter().skip(at).collect()).collect();
    std::iter::once(file.to_owned()).chain(tails)
}

/// Whether a file at this path below a directory may be shown.
fn showable(below: &Path) -> Result<(), NoSource> {
    let hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    if below.components().any(hidden) {
        return Err(NoSource::Refused("it is hidden"));
    }
    let ending = below.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let known = ENDINGS.contains(&ending.as_str());
    if known { Ok(()) } else { Err(NoSource::Refused("its name is not that of a source file")) }
}

fn read(path: &Path) -> Result<(String, Option<SystemTime>), NoSource> {
    const UNREADABLE: NoSource = NoSource::Refused("it cannot be read");
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput => NoSource::Refused("it is not a regular file"),
        io::ErrorKind::FileTooLarge => NoSource::Refused("it is too large"),
        _ => UNREADABLE,
    };
    let file = files::open(path).map_err(failed)?;
    let data = file.metadata().map_err(|_| UNREADABLE)?;
    let bytes = files::bounded(file, LARGEST).map_err(failed)?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    Ok((text.ok_or(NoSource::Refused("it is not text"))?, data.modified().ok()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct SourceTree {
        folder: tempfile::TempDir,
    }

    impl SourceTree {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("app/src/.git")).unwrap();
            let text = (1..=20).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
            for name in ["app/src/ring.cpp", "app/src/.git/x.cpp", "app/notes.txt", "secret.cpp", "app/end.h"] {
                fs::write(folder.path().join(name), &text).unwrap();
            }
            Self { folder }
        }

        fn path(&self, name: &str) -> String {
            fs::canonicalize(self.folder.path()).unwrap().join(name).to_str().unwrap().to_owned()
        }

        fn sources(&self, named: &[&str]) -> Sources {
            let named: Vec<_> = named.iter().map(|name| self.path(name).into()).collect();
            Sources::new(Some(Path::new(&self.path("app"))), &named)
        }
    }

    #[test]
    fn the_lines_around_a_place_are_shown() {
        let tree = SourceTree::new();
        let file = tree.path("app/src/ring.cpp");
        let shown = tree.sources(&[]).lines(&file, 10, AROUND, None).unwrap();
        assert_eq!((shown.first, shown.lines.len(), shown.lines[4].as_str()), (6, 9, "line 10"));
        let shown = tree.sources(&[]).lines(&file, 2, AROUND, None).unwrap();
        assert_eq!((shown.first, shown.lines.len(), shown.lines[1].as_str()), (1, 6, "line 2"));
        assert_eq!(tree.sources(&[]).lines("src/ring.cpp", 20, AROUND, None).unwrap().lines.len(), 5);
        assert_eq!(tree.sources(&[]).lines(&file, 21, AROUND, None), Err(NoSource::Refused("it has fewer lines")));
    }

    #[test]
    fn a_file_that_was_changed_after_the_run_is_marked() {
        let tree = SourceTree::new();
        let file = tree.path("app/src/ring.cpp");
        let changed = |began| tree.sources(&[]).lines(&file, 1, AROUND, Some(began)).unwrap().changed;
        let now = SystemTime::now();
        assert!(changed(now - Duration::from_hours(1)) && !changed(now + Duration::from_hours(1)));
    }

    #[test]
    fn nothing_but_source_below_the_directories_is_shown() {
        let tree = SourceTree::new();
        symlink(tree.path("secret.cpp"), tree.path("app/link.cpp")).unwrap();
        symlink("/dev/zero", tree.path("app/zero.cpp")).unwrap();
        let pipe = tree.path("app/pipe.cpp");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::write(tree.path("app/binary.cpp"), [b'a', 0, b'b']).unwrap();
        fs::write(tree.path("app/large.cpp"), vec![b'\n'; LARGEST as usize + 1]).unwrap();
        for (file, why) in [
            ("secret.cpp", NoSource::Elsewhere),
            ("app/none.cpp", NoSource::Elsewhere),
            ("app/../secret.cpp", NoSource::Refused("a symbolic link leads elsewhere")),
            ("app/link.cpp", NoSource::Refused("a symbolic link leads elsewhere")),
            ("app/zero.cpp", NoSource::Refused("a symbolic link leads elsewhere")),
            ("app/notes.txt", NoSource::Refused("its name is not that of a source file")),
            ("app/src/.git/x.cpp", NoSource::Refused("it is hidden")),
            ("app/pipe.cpp", NoSource::Refused("it is not a regular file")),
            ("app/binary.cpp", NoSource::Refused("it is not text")),
            ("app/large.cpp", NoSource::Refused("it is too large")),
        ] {
            assert_eq!(tree.sources(&[]).lines(&tree.path(file), 1, AROUND, None), Err(why), "{file}");
        }
        for root in ["/", "/proc"] {
            let sources = Sources::new(Some(Path::new(root)), &[]);
            assert!(sources.lines("/proc/self/environ", 1, AROUND, None).is_err(), "{root}");
        }
        let root = Sources::new(Some(Path::new("/")), &[]);
        assert_eq!(root.lines(&tree.path("secret.cpp"), 1, AROUND, None), Err(NoSource::Elsewhere));
    }

    #[test]
    fn in_a_named_directory_the_end_of_a_path_is_enough() {
        let tree = SourceTree::new();
        let sources = Sources::new(None, &[tree.path("app").into()]);
        assert_eq!(sources.lines("/build/x/src/ring.cpp", 3, AROUND, None).unwrap().lines[2], "line 3");
        assert_eq!(sources.lines("/build/x/secret.cpp", 3, AROUND, None), Err(NoSource::Elsewhere));
        assert_eq!(tree.sources(&[]).lines("/build/x/src/ring.cpp", 3, AROUND, None), Err(NoSource::Elsewhere));
    }
}
