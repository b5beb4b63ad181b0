//! Why there is no judgement at all.

use std::path::PathBuf;

/// What keeps the judge from reading a trace; each says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {source}; give trace files, or directories that hold urscope-*.json files", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is something else.
    #[error("{} is not a urscope trace: {found}; expected a file that liburscope.so wrote (urscope-*.json)", path.display())]
    NotATrace {
        /// Which.
        path: PathBuf,
        /// What it holds instead.
        found: String,
    },
    /// A trace lacks its first record.
    #[error(
        "{} has records of urscope but no header: expected a urscope_header record before the first call, found {found}; \
         the start of the file is missing, take the whole file",
        path.display()
    )]
    NoHeader {
        /// Which.
        path: PathBuf,
        /// What came first.
        found: String,
    },
    /// A trace is of a format that this version does not know.
    #[error(
        "{} has trace format {format} (written by urscope {writer}), but this urscope reads formats up to {ours}; \
         judge it with the urscope that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The version of urscope that wrote it.
        writer: String,
        /// The newest format we read.
        ours: u32,
    },
}
