//! Reads what `urscope run` observed of the processes from outside: until when each was there.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
};

use urscope_schema::trace::process_times::{FILE, ProcessTimes};

use super::header::TraceHeader;

/// The most bytes that are read of a file: 100,000 processes.
const LIMIT: u64 = 16 << 20;

/// The observed times of processes, by boot, number and start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservedTimes(HashMap<(String, u32, u64), ProcessTimes>);

impl ObservedTimes {
    /// Reads the files beside these traces. Files that are missing or damaged only cost precision.
    pub(crate) fn beside(traces: &[PathBuf]) -> Self {
        let folders: BTreeSet<&Path> = traces.iter().filter_map(|path| path.parent()).collect();
        let files = folders.into_iter().map(|folder| folder.join(FILE));
        let small = files.filter(|file| fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() <= LIMIT));
        let texts = small.filter_map(|file| fs::read_to_string(file).ok());
        let mut times = HashMap::new();
        for text in texts {
            let lines = text.lines().filter_map(|line| serde_json::from_str::<ProcessTimes>(line).ok());
            times.extend(lines.map(|times| ((times.boot_id.clone(), times.pid, times.start), times)));
        }
        Self(times)
    }

    /// What was observed of the process that wrote a trace.
    pub(crate) fn of(&self, header: &TraceHeader) -> Option<&ProcessTimes> {
        let common = &*header.common;
        let times = self.0.get(&(common.boot_id.clone(), header.pid, header.start))?;
        let known = [times.pid_namespace, common.pid_namespace].into_iter().all(|namespace| namespace != 0);
        let same_namespace = !known || times.pid_namespace == common.pid_namespace;
        (same_namespace && !common.boot_id.is_empty()).then_some(times)
    }
}
