//! The errors that prevent a judgement.

use std::path::PathBuf;

/// Why a trace cannot be analyzed. Each message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {source}; give trace files, or directories that hold urscope-*.json or *.fxt files", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is not a trace.
    #[error("{} is not a urscope trace: {found}; expected a file that liburscope.so wrote (urscope-*.json or *.fxt)", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What it contains instead.
        found: String,
    },
    /// A trace has no header record.
    #[error(
        "{} has urscope records but no header: expected a urscope_header record before the first call, found {found}; \
         the start of the file is missing, use the whole file",
        path.display()
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// The first record.
        found: String,
    },
    /// This version does not know the format of a trace.
    #[error(
        "{} has trace format {format} (written by urscope {writer}), but this urscope reads formats up to {ours}; \
         judge it with the urscope that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The version of urscope that wrote it.
        writer: String,
        /// The newest format that this version reads.
        ours: u32,
    },
}
