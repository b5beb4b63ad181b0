//! Places in processes, with their call stacks and lines of source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urscope_schema::host::ranks::process_name;

/// A place in a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The host.
    pub host: String,
    /// The process id on its host.
    pub pid: u32,
    /// Its rank in its job, if a launcher assigned one.
    pub rank: Option<u32>,
    /// Its [`super::ProcessSummary::role`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The executable.
    pub executable: String,
    /// The thread id.
    pub tid: u32,
    /// The time, in nanoseconds since the first process of the run began. Hosts are aligned by their real time.
    pub time_ns: u64,
    /// The function.
    pub function: Option<String>,
    /// The number of the call in its process.
    pub call: Option<u64>,
    /// Of a race: when its process knew that the command had completed, in nanoseconds as [`Self::time_ns`]; absent if
    /// urscope did not follow that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_ns: Option<u64>,
    /// The call stack, innermost frame first; empty if none was recorded.
    pub stack: Vec<Frame>,
    /// The call site in few words, as `exchange_halo, ring.cpp:37`: the innermost frame of the program that is no
    /// wrapper; absent if the stack shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The lines of source around the call site, if the source is below the directories of the user's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

impl Location {
    /// The name of its process: `rank 7 (pid 12510)`, `producer (pid 12510)`, or with the program's name.
    pub fn process(&self) -> String {
        process_name(self.role.as_deref().unwrap_or(&self.executable), self.pid, self.rank)
    }
}

/// Some lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpt {
    /// The file, as the call stack names it.
    pub file: String,
    /// The line of the place, counted from 1.
    pub line: u32,
    /// The number of the first of the lines.
    pub first: u32,
    /// The lines, without their ends and with spaces for tabs; of a long one the first 300 characters.
    pub lines: Vec<String>,
    /// Whether the file was changed after the process had begun.
    pub changed: bool,
}

/// One frame of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// The path of the program or library that contains it, or of the source if it is a frame of Python; empty if none
    /// does.
    pub module: String,
    /// Its address in the module, `0x` and hexadecimal; empty for a frame of Python.
    pub offset: String,
    /// The function.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The column, counted from 1, if it is known. Compilers mean the parenthesis behind the name of what is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// How far it is in its function: in lines from the declaration, or in bytes from the first address where there are
    /// no lines; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<u64>,
    /// How many lines of its function follow; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<u32>,
    /// The line of source, with spaces for tabs, of the call site and of the wrappers that lead to it, if the source
    /// is below the directories of the user's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The places in its function from which the processes of its program made the same call, directly or through
    /// others, if there are several: lines in ascending order, or addresses where there are no lines. The most that are
    /// listed are 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u64>,
    /// Whether it is no call site: its function only passes the call on, `--wrapper` names it, or the calls of the run
    /// go through it from several callers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper: bool,
    /// Whether it is of the program: not of the runtime, of Python and its packages for SYCL, or of a header of theirs.
    /// Reports show these frames, unless a stack has no others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub program: bool,
}
