//! The records of a trace, whatever its form, and why something is none.

use serde::Deserialize;

use super::records::{Device, EntryPoint, Exec, Footer, Found, Gap, Header, Module, Stack};
use crate::call::{Enter, Executed, Exit, Nanos, Synchronization};

/// What a trace says in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The process that wrote the trace.
    Header(Box<Header>),
    /// The name of the process.
    ProcessName(String),
    /// The name of a thread.
    ThreadName(u32, String),
    /// An entry point of calls into urscope.
    EntryPoint(Box<EntryPoint>),
    /// A device.
    Device(Box<Device>),
    /// A library that call stacks lead through.
    Module(Box<Module>),
    /// A call stack.
    Stack(Box<Stack>),
    /// A call begins.
    Enter(Enter),
    /// A call returns.
    Exit(Exit),
    /// A call begins that the runtime makes inside of the one with this number.
    InnerEnter(Enter),
    /// Such a call returns: the latest one that has begun on this thread.
    InnerExit(Exit),
    /// A note of urscope's own.
    Note(Nanos, String),
    /// The number of descriptors that the process had open.
    Descriptors(Nanos, u64),
    /// The device has executed a command.
    Executed(Executed),
    /// A call orders commands, or shows that some have completed.
    Synchronization(Synchronization),
    /// A finding of the validation layer while the program ran. The analyzer ignores it and finds the same by itself.
    Finding(Nanos, Box<Found>),
    /// The normal end of the process.
    Footer(Box<Footer>),
    /// `urscope_gap`: records are missing before this one.
    Gap(Gap),
    /// The process is about to become another program, or has failed to.
    Exec(Exec),
    /// A well-formed event that is not of urscope.
    Foreign,
}

/// A line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The position of the line, in bytes from the start of the file.
    pub offset: u64,
    /// The number of the line, from 1 on.
    pub line: u64,
    /// The reason.
    pub why: Why,
}

/// Why a line was skipped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The last line of a file that was not closed: its writer was stopped while it wrote the line.
    #[error("cut short: the writer was stopped while it wrote this line")]
    Torn,
    /// The line is no JSON event.
    #[error("not a trace event: {0}")]
    Damaged(String),
    /// The line is longer than [`LINE_LIMIT`].
    #[error("longer than {LINE_LIMIT} bytes")]
    TooLong,
    /// A record of urscope with missing or invalid fields.
    #[error("a urscope record with missing or invalid fields: {0}")]
    Unfit(String),
}

/// The longest line that is read, in bytes, not counting the white space around it.
pub const LINE_LIMIT: usize = 1 << 20;

/// The fields of a record, from JSON.
pub(super) fn unfit<'a, T: Deserialize<'a>>(args: &'a [u8]) -> Result<T, Why> {
    serde_json::from_slice(args).map_err(|error| Why::Unfit(error.to_string()))
}
