//! Reads what `urscope run` observed of the processes from outside: until when each was there, which have no traces,
//! and what could not be observed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::MetadataExt as _};

use urscope_schema::trace::process_times::{FILE, ProcessTimes};
use urscope_schema::trace::records::Header;

use crate::files::{self, Folder, owners};

/// The most bytes that are read of a file, its last ones: 100,000 processes.
const LIMIT: u64 = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservedTimes {
    /// The observed times of processes, by boot, number and start.
    ended: HashMap<(String, u32, u64), ProcessTimes>,
    /// The processes that could not write their traces.
    untraced: Vec<ProcessTimes>,
    /// The processes that signals ended before they made traces.
    early_deaths: Vec<ProcessTimes>,
    /// What could not be observed.
    unobserved: Vec<ProcessTimes>,
    /// Whether the first lines of a file were not read.
    pub(crate) is_cut: bool,
}

/// The last lines of the file in a directory, and whether there are others; none if it is missing, or another user's.
fn lines(folder: &Folder, is_trusted: impl Fn(u32) -> bool) -> io::Result<(Vec<ProcessTimes>, bool)> {
    let mut file = folder.file_of(FILE, is_trusted)?;
    let before = file.metadata()?.len().saturating_sub(LIMIT);
    file.seek(SeekFrom::Start(before))?;
    let text = files::bounded(file, LIMIT)?;
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok((lines.collect(), before > 0))
}

impl ObservedTimes {
    /// Reads the files beside these traces. Files that are missing or damaged only cost precision.
    ///
    /// What a file says changes the verdict, so only this user, root, or the user to whom all traces beside it belong
    /// may have written it.
    pub(crate) fn beside(traces: &[PathBuf]) -> Self {
        let mut folders: BTreeMap<&Path, BTreeSet<u32>> = BTreeMap::new();
        for path in traces {
            let owner = fs::symlink_metadata(path).map(|data| data.uid());
            folders.entry(files::parent(path)).or_default().extend(owner);
        }
        let mut times = Self::default();
        for (folder, of_traces) in folders {
            let is_trusted = |owner| owners().have(owner) || of_traces == BTreeSet::from([owner]);
            let (lines, is_cut) =
                Folder::open(folder).and_then(|folder| lines(&folder, is_trusted)).unwrap_or_default();
            times.extend(lines);
            times.is_cut |= is_cut;
        }
        times
    }

    /// Adds lines, as a run has them in memory.
    pub(crate) fn extend(&mut self, lines: impl IntoIterator<Item = ProcessTimes>) {
        for line in lines {
            let list = if line.early_death.is_some() {
                &mut self.early_deaths
            } else if !line.untraced.is_empty() {
                &mut self.untraced
            } else if !line.unobserved.is_empty() {
                &mut self.unobserved
            } else {
                self.ended.insert((line.boot_id.clone(), line.pid, line.start), line);
                continue;
            };
            list.push(line);
        }
    }

    /// Why processes of a run on a host could not write their traces, as parts of a message.
    pub(crate) fn untraced<'t>(&'t self, boot_id: &'t str, run: &'t str) -> impl Iterator<Item = &'t str> {
        let of_run = self.untraced.iter().filter(move |times| times.boot_id == boot_id && times.run == run);
        of_run.map(|times| times.untraced.as_str())
    }

    /// What could not be observed of a run on a host, as parts of a message.
    pub(crate) fn unobserved<'t>(&'t self, boot_id: &'t str, run: &'t str) -> impl Iterator<Item = &'t str> {
        let of_run = self.unobserved.iter().filter(move |times| times.boot_id == boot_id && times.run == run);
        of_run.map(|times| times.unobserved.as_str())
    }

    /// The processes of a run on a host that signals ended before they made traces.
    pub(crate) fn early_deaths<'t>(&'t self, boot_id: &'t str, run: &'t str) -> impl Iterator<Item = &'t ProcessTimes> {
        self.early_deaths.iter().filter(move |times| times.boot_id == boot_id && times.run == run)
    }

    /// What was observed of the process that wrote a trace.
    pub(crate) fn get(&self, header: &Header) -> Option<&ProcessTimes> {
        let times = self.ended.get(&(header.boot_id.clone(), header.pid, header.start))?;
        let known = [times.pid_namespace, header.pid_namespace].into_iter().all(|namespace| namespace != 0);
        let same_namespace = !known || times.pid_namespace == header.pid_namespace;
        (same_namespace && !header.boot_id.is_empty()).then_some(times)
    }
}
