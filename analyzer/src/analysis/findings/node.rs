//! What was seen of one node, and of many: the form in which judgements travel between machines.
//!
//! Handles never leave their host, so each node is judged where its traces are. What is found there is kept apart by node
//! here, so that reports can be merged in any order and grouping; the verdict over all of them is drawn at the end (`aggregate`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use super::aggregate;
use crate::{
    analysis::{FoundFinding, Judgement, Options, ProcessSummary, SkippedLine, merging},
    plain::plain,
};

/// The version of the form of a report file.
pub const REPORT_VERSION: u32 = 1;

/// No count of a report is larger, so that sums of them hold: a process that makes a call every microsecond needs twelve days.
const COUNTABLE: u64 = 1 << 40;

/// What a file that is compressed by gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How much text a compressed report may hold, in bytes: whoever made it may have meant to fill the memory.
const MOST: u64 = 1 << 30;

/// What was seen of some nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    #[serde(rename = "urscope_report")]
    pub(crate) version: u32,
    /// The version of urscope that wrote it.
    pub(crate) urscope: String,
    /// In the order of their keys, each once.
    pub(crate) nodes: Vec<Node>,
    /// Trace files that hold no header, so that their node is not known.
    pub(crate) headless: BTreeSet<String>,
}

/// What was seen of one node: of one boot of a host, in one time namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) key: Key,
    /// What it is called.
    pub(crate) host: String,
    /// When its first process began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) monotonic_ns: u64,
    /// The same moment in nanoseconds of `CLOCK_REALTIME`; 0 if that is not known.
    pub(crate) realtime_ns: u64,
    /// In the order in which they began.
    pub(crate) processes: Vec<ProcessSummary>,
    pub(crate) calls: BTreeMap<String, u64>,
    /// Not counted yet, times since the node's first process began.
    pub(crate) findings: Vec<FoundFinding>,
    pub(crate) unseen: Vec<String>,
    /// Why what is without fault proves nothing.
    pub(crate) gaps: Vec<String>,
    pub(crate) skipped: Vec<SkippedLine>,
    pub(crate) skipped_lines: u64,
    /// How many more reports of this node there were, that do not count.
    pub(crate) duplicates: u64,
}

/// Which node: within equal keys clocks and handles mean the same, and the runs are those that were judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The kernel's boot id, or the host's name where there is none.
    pub(crate) boot: String,
    pub(crate) time_namespace: u64,
    pub(crate) runs: BTreeSet<String>,
}

/// Why a report cannot be merged; each says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; give reports that urscope check --report wrote", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is something else.
    #[error("{} is no report of a node: {found}; expected a file that urscope check --report wrote", path.display())]
    NotAReport {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// A report is of another version.
    #[error(
        "{} has report version {version} (written by urscope {writer}), but this urscope merges version {REPORT_VERSION}; \
         merge with the urscope that wrote it, or judge the traces again",
        path.display()
    )]
    Version {
        /// Which.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version of urscope that wrote it.
        writer: String,
    },
}

/// What is read of a report first.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "urscope_report")]
    version: u32,
    #[serde(default)]
    urscope: String,
}

impl Default for Report {
    fn default() -> Self {
        let urscope = env!("CARGO_PKG_VERSION").to_owned();
        Self { version: REPORT_VERSION, urscope, nodes: Vec::new(), headless: BTreeSet::new() }
    }
}

impl Report {
    /// Reads a report file, also one that is compressed by gzip.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let unreadable = |source| ReportError::Unreadable { path: path.to_owned(), source };
        let bytes = fs::read(path).map_err(unreadable)?;
        if !bytes.starts_with(&GZIP) {
            return Self::parse(path, &bytes);
        }
        let mut text = Vec::new();
        MultiGzDecoder::new(&*bytes).take(MOST + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MOST {
            let found = format!("it holds more than {MOST} bytes of text");
            return Err(ReportError::NotAReport { path: path.to_owned(), found });
        }
        Self::parse(path, &text)
    }

    /// Reads what stands in the report file of that name.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, ReportError> {
        let no_report = |error: serde_json::Error| ReportError::NotAReport {
            path: path.to_owned(),
            found: plain(&error.to_string()),
        };
        let head: Head = serde_json::from_slice(text).map_err(no_report)?;
        if head.version != REPORT_VERSION {
            let (version, writer) = (head.version, plain(&head.urscope));
            return Err(ReportError::Version { path: path.to_owned(), version, writer });
        }
        let report: Self = serde_json::from_slice(text).map_err(no_report)?;
        if let Some(count) = report.nodes.iter().flat_map(Node::counts).find(|count| *count > COUNTABLE) {
            let found = format!("it counts {count} of something, more than any run has");
            return Err(ReportError::NotAReport { path: path.to_owned(), found });
        }
        // Whoever wrote it, its nodes are in order and each is there once.
        Ok(Self::default().merge(report))
    }

    /// Writes a report file: one JSON object.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Both. The order and the grouping in which reports are merged do not matter; of a node that is in both, only one
    /// report counts, and it is counted how many do not.
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
        Self { nodes: nodes.into_values().collect(), headless, ..Self::default() }
    }

    /// The judgement over all nodes. `paths` are named where there is nothing to judge.
    pub fn judgement(&self, paths: &[PathBuf], options: &Options) -> Judgement {
        aggregate::judgement(self, paths, options)
    }
}

impl Node {
    /// The one of two reports of the same node that saw more.
    fn or(self, other: Self) -> Self {
        let duplicates = self.duplicates + other.duplicates + 1;
        let (mut one, mut two) = (self, other);
        (one.duplicates, two.duplicates) = (0, 0);
        let more = if one.weight() >= two.weight() { one } else { two };
        Self { duplicates, ..more }
    }

    fn weight(&self) -> (usize, u64, String) {
        // The text breaks ties, so that the choice does not depend on the order.
        let text = serde_json::to_string(self).unwrap_or_default();
        (self.processes.len(), self.calls.values().sum(), text)
    }

    /// All that is counted in it.
    fn counts(&self) -> impl Iterator<Item = u64> {
        let of_findings =
            |finding: &FoundFinding| finding.hosts.values().chain([&finding.count]).copied().collect::<Vec<_>>();
        let processes = self.processes.iter().flat_map(|seen| [seen.calls, seen.ipc_calls, seen.lost]);
        let all = processes.chain(self.calls.values().copied()).chain(self.findings.iter().flat_map(of_findings));
        all.chain([self.skipped_lines, self.duplicates])
    }

    /// How much later than the first node its time begins, in nanoseconds.
    pub(crate) fn shift(&self, first: u64) -> u64 {
        merging::shift(self.realtime_ns, first)
    }
}
