//! The trace record: one JSON line of a Chrome trace, which Perfetto opens as it is.
//!
//! [`write`] makes lines without allocating, [`read`] reads them back, [`records`] are those that are not calls. [`process_times`] describes a file beside the traces. `FORMAT.md` in
//! this folder specifies the format, with its history. Nothing here opens a file.

pub mod process_times;
pub mod read;
pub mod records;
mod scan;
pub mod write;

/// The version of the format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The `cat` of call records.
pub const CALL: &str = "ur";

/// The `cat` of urscope's own notes.
pub const NOTE: &str = "urscope";
