//! The index of processes: finds the number of a process from a location in a report.

use std::collections::HashMap;

use super::ProcessStart;
use crate::analysis::Location;

/// The processes of a run. A host and a pid can name several processes: pids are reused, and `exec` replaces the
/// program.
#[derive(Clone, Debug, Default)]
pub struct ProcessIndex(HashMap<(String, u32), Vec<Entry>>);

#[derive(Clone, Debug)]
struct Entry {
    process: u32,
    began: u64,
    executable: String,
}

impl ProcessIndex {
    /// Adds a process that begins.
    pub fn enter(&mut self, began: &ProcessStart<'_>) {
        let ProcessStart { process, at, header, .. } = *began;
        let entry = Entry { process, began: at, executable: header.executable.clone() };
        self.0.entry((header.host.clone(), header.pid)).or_default().push(entry);
    }

    /// The number of a location's process: among those with the same host, pid and executable, the latest that had
    /// begun by then, or else the first.
    pub fn number(&self, side: &Location) -> Option<u32> {
        let same = self.0.get(&(side.host.clone(), side.pid))?;
        let mut like = same.iter().filter(|known| known.executable == side.executable);
        let first = like.clone().next()?;
        Some(like.rfind(|known| known.began <= side.time_ns).unwrap_or(first).process)
    }
}
