//! What `urscope run` has observed of the processes of a run: until when each was there, which have made no traces, and
//! what could not be observed.
//!
//! It is one list, so nobody reads what was seen without what was not. The verdict has it from memory. The same lines
//! are written beside the traces, for later commands: that file may be full, read-only or another user's.

use std::{fs::File, io::Write as _};

use urscope_analyzer::analysis::{boot_id, pid_namespace};
use urscope_analyzer::files::{Folder, WriteMode};
use urscope_schema::trace::process_times::{FILE, ProcessTimes};

use super::book::Key;
use crate::output::complain;

#[derive(Clone, Debug)]
pub(super) struct Observation {
    lines: Vec<ProcessTimes>,
    /// Whether the directory of the traces, or one above it that another user can move, was moved.
    pub(super) is_moved: bool,
    /// Which process has loaded what to use a GPU without making a trace, as part of a message.
    pub(super) opened: Option<String>,
    run: String,
    boot_id: String,
    pub(super) pid_namespace: u64,
}

impl Observation {
    /// Of a run of which nothing is known yet.
    pub(super) fn new(run: &str) -> Self {
        let boot_id = boot_id();
        let pid_namespace = pid_namespace();
        Self { lines: Vec::new(), is_moved: false, opened: None, run: run.to_owned(), boot_id, pid_namespace }
    }

    /// Of a run that could not be observed, and why.
    pub(super) fn none(run: &str, why: String) -> Self {
        let mut observation = Self::new(run);
        observation.miss(why);
        observation
    }

    /// Adds what could not be observed.
    pub(super) fn miss(&mut self, what: String) {
        self.lines.push(self.unobserved(what));
    }

    /// All lines.
    pub(super) fn lines(&self) -> &[ProcessTimes] {
        &self.lines
    }

    /// Adds those of other ranks.
    pub(super) fn extend(&mut self, others: Vec<ProcessTimes>) {
        self.lines.extend(others);
    }

    /// The lines that change a verdict. The others are of processes that have traces.
    pub(super) fn of_the_run(&self) -> impl Iterator<Item = &ProcessTimes> {
        self.lines.iter().filter(|line| !line.run.is_empty())
    }

    /// Which processes could not be traced, and why.
    pub(super) fn untraced(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.untraced.as_str()).filter(|untraced| !untraced.is_empty())
    }

    /// A line of a process that has a trace.
    pub(super) fn times(&self, (pid, start): Key) -> ProcessTimes {
        let boot_id = self.boot_id.clone();
        let pid_namespace = self.pid_namespace;
        ProcessTimes { boot_id, pid_namespace, pid, start, ..ProcessTimes::default() }
    }

    /// A line of a process without a trace.
    pub(super) fn without_trace(&self, key: Key) -> ProcessTimes {
        ProcessTimes { run: self.run.clone(), ..self.times(key) }
    }

    /// A line that says what could not be observed.
    pub(super) fn unobserved(&self, unobserved: String) -> ProcessTimes {
        ProcessTimes { unobserved, ..self.without_trace((0, 0)) }
    }
}

/// The file beside the traces.
#[derive(Debug)]
pub(super) struct Written {
    folder: Folder,
    file: Option<File>,
    /// Whether the user knows that it cannot be written.
    said: bool,
}

impl Written {
    pub(super) fn beside(folder: Folder) -> Self {
        Self { folder, file: None, said: false }
    }

    /// Adds a line to an observation, and to the file. One write per line: runs that share a directory append to one
    /// file.
    pub(super) fn add(&mut self, to: &mut Observation, line: ProcessTimes) {
        if let Some(file) = self.open()
            && let Ok(mut text) = serde_json::to_vec(&line)
        {
            text.push(b'\n');
            drop(file.write_all(&text));
        }
        to.lines.push(line);
    }

    fn open(&mut self) -> Option<&mut File> {
        if self.file.is_none() && !self.said {
            match self.folder.own_file(FILE, WriteMode::Append) {
                Ok(file) => self.file = Some(file),
                Err(error) => {
                    self.said = true;
                    let path = self.folder.path().join(FILE);
                    complain(format_args!(
                        "{} is not used: {error}; later commands know less of the processes of this run, so remove it",
                        path.display()
                    ));
                }
            }
        }
        self.file.as_mut()
    }
}
