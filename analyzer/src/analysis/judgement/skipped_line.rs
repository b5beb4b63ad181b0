//! A line of a trace that could not be used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedLine {
    /// The file.
    pub file: String,
    /// The line, counted from 1; 0 in a binary trace.
    pub line: u64,
    /// The offset of the line in the file, in bytes.
    pub offset: u64,
    /// Why it could not be used.
    pub why: String,
}

impl SkippedLine {
    /// The file, with the line if it has lines.
    pub fn place(&self) -> String {
        if self.line == 0 { self.file.clone() } else { format!("{}:{}", self.file, self.line) }
    }
}
