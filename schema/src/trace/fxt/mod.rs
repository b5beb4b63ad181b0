//! The binary form of a trace: a Fuchsia trace (FXT), which Perfetto opens as it is.
//!
//! The file is a sequence of chunks of [`CHUNK`] words. Each chunk belongs to one thread at a time, so that threads
//! write without a lock; the chunks of one writer form a lane. [`write`] makes records, [`read`] reads them back. The
//! records of Fuchsia's format are specified in <https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format>;
//! `FORMAT.md` says which of them urscope uses and how.

pub mod read;
pub mod write;

use crate::api::Function;
use crate::call::{Access, SyncKind};

use super::records::{Device, EntryPoint, Exec, Footer, Gap, Header, Module, Named, Stack};

/// The number of words in a chunk. A record never crosses the end of a chunk.
pub const CHUNK: usize = 4096;

/// The size of a chunk in bytes.
pub const CHUNK_BYTES: u64 = (CHUNK * size_of::<u64>()) as u64;

/// The first word of a file, which is a record (magic number record).
pub const MAGIC: u64 = 0x0016_5478_4604_0010;

/// The number of words before the first record of a thread in a chunk: the head of the chunk and the record of the
/// thread.
pub const HEAD: usize = 5;

/// The contents of a word that nothing was written to: a record of one word that every reader skips (metadata of an
/// unknown type). So a file can be read at any time.
pub const UNWRITTEN: u64 = hole(1);

/// The most words of a record: the size field has 12 bits.
pub const LONGEST: usize = (1 << 12) - 1;

/// The first word of a record of `words` words that every reader skips. A writer claims the room of a record by it.
pub const fn hole(words: usize) -> u64 {
    kind::METADATA | (words as u64) << 4 | kind::METADATA_HOLE << 16
}

/// Whether nothing is written, or not yet, where a record has this first word.
pub const fn is_hole(first: u64) -> bool {
    first & 0xf == kind::METADATA && first >> 16 & 0xf == kind::METADATA_HOLE
}

/// The kind of the record of a call: of two of a kind, the later one may repeat the values of the earlier one.
#[inline]
pub const fn kind_of(function: Function, begins: bool) -> u16 {
    (function as u16) << 1 | begins as u16
}

/// Types of records, and of what they consist of.
mod kind {
    pub(super) const METADATA: u64 = 0;
    pub(super) const INITIALIZATION: u64 = 1;
    pub(super) const STRING: u64 = 2;
    pub(super) const THREAD: u64 = 3;
    pub(super) const EVENT: u64 = 4;
    pub(super) const BLOB: u64 = 5;
    pub(super) const KERNEL_OBJECT: u64 = 7;

    /// Types of metadata that Fuchsia does not define: the head of a chunk, and room without a record.
    pub(super) const METADATA_CHUNK: u64 = 14;
    pub(super) const METADATA_HOLE: u64 = 15;

    pub(super) const INSTANT: u64 = 0;
    pub(super) const COUNTER: u64 = 1;
    pub(super) const BEGIN: u64 = 2;
    pub(super) const END: u64 = 3;
    pub(super) const COMPLETE: u64 = 4;

    pub(super) const UINT32: u64 = 2;
    pub(super) const UINT64: u64 = 4;
    pub(super) const STRING_ARG: u64 = 6;
    pub(super) const POINTER: u64 = 7;
    pub(super) const KOID: u64 = 8;

    /// A blob that consists of data.
    pub(super) const DATA: u64 = 1;

    pub(super) const PROCESS: u64 = 1;
    pub(super) const THREAD_OBJECT: u64 = 2;
}

/// The bit of a string reference that says that the string follows inline.
const INLINE: u64 = 0x8000;

macro_rules! names {
    ($($name:ident = $text:expr,)*) => {
        /// The strings of a file that are neither fields of calls nor functions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Name {
            $($name,)*
        }

        impl Name {
            const ALL: &[(Name, &str)] = &[$((Name::$name, $text),)*];
        }
    };
}

names! {
    Calls = super::CALL,
    // The same text, so that a reader that knows nothing of this finds all calls in one category.
    Repeats = super::CALL,
    Inner = super::INNER,
    Own = super::NOTE,
    Call = "call",
    Inside = "inside",
    Result = "result",
    Note = "note",
    Finding = "finding",
    Completed = SyncKind::Completed.name(),
    MayBeCompleted = SyncKind::MayBeCompleted.name(),
    Signals = SyncKind::Signals.name(),
    Barrier = SyncKind::Barrier.name(),
    WaitsFor = SyncKind::WaitsFor.name(),
    NotFollowed = SyncKind::NotFollowed.name(),
    InOrder = SyncKind::InOrder.name(),
    OutOfOrder = SyncKind::OutOfOrder.name(),
    List = SyncKind::List.name(),
    Executes = SyncKind::Executes.name(),
    Shares = SyncKind::Shares.name(),
    Resets = SyncKind::Resets.name(),
    Limit = SyncKind::Limit.name(),
    Event = "event",
    Descriptors = "descriptors",
    Open = "open",
    Read = Access::Read.name(),
    Write = Access::Write.name(),
    MayRead = Access::MayRead.name(),
    MayWrite = Access::MayWrite.name(),
    Memory = "memory",
    Pitch = "pitch",
    Rows = "rows",
    Text = "text",
    Rule = "rule",
    Severity = "severity",
    Message = "message",
    Process = "process",
    Header = Header::NAME,
    EntryPoint = EntryPoint::NAME,
    Device = Device::NAME,
    Module = Module::NAME,
    Stack = Stack::NAME,
    Gap = Gap::NAME,
    Exec = Exec::NAME,
    Footer = Footer::NAME,
}

/// The names of what orders commands.
const SYNCHRONIZATIONS: [(SyncKind, Name); SyncKind::ALL.len()] = [
    (SyncKind::Completed, Name::Completed),
    (SyncKind::MayBeCompleted, Name::MayBeCompleted),
    (SyncKind::Signals, Name::Signals),
    (SyncKind::Barrier, Name::Barrier),
    (SyncKind::WaitsFor, Name::WaitsFor),
    (SyncKind::NotFollowed, Name::NotFollowed),
    (SyncKind::InOrder, Name::InOrder),
    (SyncKind::OutOfOrder, Name::OutOfOrder),
    (SyncKind::List, Name::List),
    (SyncKind::Executes, Name::Executes),
    (SyncKind::Shares, Name::Shares),
    (SyncKind::Resets, Name::Resets),
    (SyncKind::Limit, Name::Limit),
];

/// The names of accesses by executed commands.
const ACCESSES: [(Access, Name); 4] = [
    (Access::Read, Name::Read),
    (Access::Write, Name::Write),
    (Access::MayRead, Name::MayRead),
    (Access::MayWrite, Name::MayWrite),
];

/// The number of words that so many bytes take.
const fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

#[cfg(test)]
mod tests;
