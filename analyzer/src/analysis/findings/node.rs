//! Reports: the results of one or more nodes, in the form that moves between machines.
//!
//! Handles never leave their host, so each node is analyzed where its traces are. A report keeps the results of each
//! node separate, so that reports can be merged in any order and grouping. `aggregate` computes the verdict over all
//! nodes at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use urscope_schema::trace::process_times::ProcessTimes;

use super::aggregate;
use crate::analysis::{FoundFinding, Judgement, Options, ProcessSummary, SkippedLine, clock, symbols::FoundWrappers};
use crate::{files, plain::plain};

/// The format version of a report file.
pub const REPORT_VERSION: u32 = 1;

/// The largest count that a report may contain, so that sums do not overflow. A process that makes a call every
/// microsecond needs twelve days to reach it.
const COUNTABLE: u64 = 1 << 40;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The largest report that is read, in bytes, after decompression. A process takes about 2 KB of it.
const LARGEST: u64 = 256 << 20;

/// The most values that it may hold, as their places in memory take more than their text. A process has about 80.
const MOST_VALUES: usize = 6 << 20;

/// The text of a report of any form in JSON, which may be compressed by gzip. An error if the report is too large.
pub(crate) fn report_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = files::read(path, LARGEST)?;
    if text.starts_with(&GZIP) {
        text = files::bounded(MultiGzDecoder::new(&*text), LARGEST)?;
    }
    if values(&text) > MOST_VALUES {
        let why = format!("it holds more than {MOST_VALUES} values, the most that is read of it");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// The number of values in JSON, or more: each but the first follows one of these characters outside of strings.
fn values(json: &[u8]) -> usize {
    let mut count = 0;
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// The results of some nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    #[serde(rename = "urscope_report")]
    pub(crate) version: u32,
    /// The version of urscope that wrote it.
    pub(crate) urscope: String,
    /// The nodes, in the order of their keys, without duplicates.
    pub(crate) nodes: Vec<Node>,
    /// Trace files without a header, whose node is not known.
    pub(crate) headless: BTreeSet<String>,
    /// Files that were ignored because they are no traces, with what they contain.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) foreign: BTreeMap<String, String>,
}

/// The results of one node: one boot of a host, in one time namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// The host's name.
    pub(crate) host: String,
    /// When its first process began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) monotonic_ns: u64,
    /// When that was in nanoseconds of `CLOCK_REALTIME`; 0 if that is not known.
    pub(crate) realtime_ns: u64,
    /// The processes, in the order in which they began.
    pub(crate) processes: Vec<ProcessSummary>,
    pub(crate) calls: BTreeMap<String, u64>,
    /// The findings, not yet combined with those of other nodes. Their times count from the beginning of the node's
    /// first process.
    pub(crate) findings: Vec<FoundFinding>,
    /// The wrappers that the calls of the node show, if it has findings.
    #[serde(default, skip_serializing_if = "FoundWrappers::is_empty")]
    pub(crate) found_wrappers: FoundWrappers,
    pub(crate) unseen: Vec<String>,
    /// Those of `unseen` that keep the verdict from being clean: adapters whose calls were not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blind: Vec<String>,
    /// Which processes have no traces, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) untraced: Vec<String>,
    /// What could not be observed of the processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unobserved: Vec<String>,
    /// The processes that signals ended before they made traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) early_deaths: Vec<ProcessTimes>,
    /// How many exports no process has tried to open.
    pub(crate) unopened: u64,
    /// Which devices have failed, and where that was seen first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) device_errors: Vec<String>,
    /// How often each function enqueued commands that were not looked into.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) unexamined: BTreeMap<String, u64>,
    /// Where calls are missing, so that a run without findings proves nothing.
    pub(crate) gaps: Vec<String>,
    pub(crate) skipped: Vec<SkippedLine>,
    pub(crate) skipped_lines: u64,
    /// How many more reports of this node were ignored.
    pub(crate) duplicates: u64,
}

/// Identifies a node and the runs that were analyzed. Nodes with equal keys share their clocks and handles.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The kernel's boot id, or the host's name where there is none.
    pub(crate) boot: String,
    pub(crate) time_namespace: u64,
    pub(crate) runs: BTreeSet<String>,
}

/// Why a report cannot be merged. Each message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; give reports that urscope check --node-report wrote", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is not a report.
    #[error("{} is not a node report: {found}; expected a file that urscope check --node-report wrote", path.display())]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// A report has another version.
    #[error(
        "{} has report version {version} (written by urscope {writer}), but this urscope merges version {REPORT_VERSION}; \
         merge with the urscope that wrote it, or judge the traces again",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version of urscope that wrote it.
        writer: String,
    },
}

/// The part of a report that is parsed first.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "urscope_report")]
    version: u32,
    urscope: String,
}

impl Default for Report {
    fn default() -> Self {
        let urscope = env!("CARGO_PKG_VERSION").to_owned();
        let headless = BTreeSet::new();
        let foreign = BTreeMap::new();
        Self { version: REPORT_VERSION, urscope, nodes: Vec::new(), headless, foreign }
    }
}

impl Report {
    /// Reads a report file, which may be compressed by gzip.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let unreadable = |source| ReportError::Unreadable { path: path.to_owned(), source };
        Self::parse(path, &report_text(path).map_err(unreadable)?)
    }

    /// Parses the text of a report; `path` names it in errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ReportError> {
        let no_report = |error: serde_json::Error| ReportError::NotAReport {
            path: path.to_owned(),
            found: plain(&error.to_string()),
        };
        let head: Head = serde_json::from_slice(text).map_err(no_report)?;
        if head.version != REPORT_VERSION {
            let version = head.version;
            let writer = plain(&head.urscope);
            return Err(ReportError::Version { path: path.to_owned(), version, writer });
        }
        let report: Self = serde_json::from_slice(text).map_err(no_report)?;
        if let Some(count) = report.nodes.iter().flat_map(Node::counts).find(|count| *count > COUNTABLE) {
            let found = format!("it has a count of {count}, more than any run can have");
            return Err(ReportError::NotAReport { path: path.to_owned(), found });
        }
        // The merge sorts the nodes and removes duplicates, whatever program wrote the file.
        Ok(Self::default().merge(report))
    }

    /// Writes a report file: one JSON object.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Merges two reports. The order and the grouping of merges do not matter. If both have the same node, one of the
    /// two is ignored, and the number of ignored ones is kept.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let mut nodes: BTreeMap<Key, Node> = BTreeMap::new();
        for node in self.nodes.into_iter().chain(other.nodes) {
            let known = nodes.remove(&node.key);
            let node = match known {
                Some(known) => known.or(node),
                None => node,
            };
            nodes.insert(node.key.clone(), node);
        }
        let headless = self.headless.into_iter().chain(other.headless).collect();
        let foreign = self.foreign.into_iter().chain(other.foreign).collect();
        Self { nodes: nodes.into_values().collect(), headless, foreign, ..Self::default() }
    }

    /// The report without the command lines of the processes.
    #[must_use]
    pub fn without_command_lines(mut self) -> Self {
        for process in self.nodes.iter_mut().flat_map(|node| &mut node.processes) {
            process.command.clear();
        }
        self
    }

    /// The judgement over all nodes. It names `paths` if there is nothing to judge.
    pub fn judgement(&self, paths: &[PathBuf], options: &Options) -> Judgement {
        aggregate::judgement(self, paths, options)
    }
}

impl Node {
    /// Of two reports of the same node, the one with more processes and calls.
    fn or(self, other: Self) -> Self {
        let duplicates = self.duplicates + other.duplicates + 1;
        let mut one = self;
        let mut two = other;
        (one.duplicates, two.duplicates) = (0, 0);
        let more = if one.weight() >= two.weight() { one } else { two };
        Self { duplicates, ..more }
    }

    fn weight(&self) -> (usize, u64, String) {
        // The text breaks ties, so that the choice does not depend on the order of merging.
        let text = serde_json::to_string(self).unwrap_or_default();
        (self.processes.len(), self.calls.values().sum(), text)
    }

    /// All counts of the node.
    fn counts(&self) -> impl Iterator<Item = u64> {
        let of_findings =
            |finding: &FoundFinding| finding.hosts.values().chain([&finding.count]).copied().collect::<Vec<_>>();
        let processes = self.processes.iter().flat_map(|process| [process.calls, process.ipc_calls, process.lost]);
        let all = processes.chain(self.calls.values().copied()).chain(self.findings.iter().flat_map(of_findings));
        let all = all.chain(self.unexamined.values().copied());
        all.chain([self.skipped_lines, self.duplicates, self.unopened])
    }

    /// How much later than the first node this one began, in nanoseconds. `first` is in nanoseconds of
    /// `CLOCK_REALTIME`.
    pub(crate) fn shift(&self, first: u64) -> u64 {
        clock::shift(self.realtime_ns, first)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _};

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert_eq!(values(br#"{"a": [1, 2, {}], "b,[{\"": "\\", "c": null}"#), 7);
        assert_eq!(values(b"1"), 0);
    }

    #[test]
    fn a_report_that_would_take_too_much_memory_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json.gz");
        let refused = |piece: &[u8], times: usize| {
            let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
            let block = piece.repeat((1 << 20) / piece.len());
            (0..times).for_each(|_| packed.write_all(&block).unwrap());
            packed.finish().unwrap();
            Report::read(&path).unwrap_err().to_string()
        };
        let error = refused(b" ", 257);
        assert!(error.contains("it holds more than 256 MiB"), "{error}");
        let error = refused(b"[],", 10);
        assert!(error.contains("it holds more than 6291456 values"), "{error}");
    }
}
