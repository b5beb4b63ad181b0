//! The trace record: one JSON line of a Chrome trace that Perfetto opens as it stands.
//!
//! [`write`] makes lines without allocating, [`read`] takes them back, [`records`] are the ones that are not calls.
//! `FORMAT.md` beside this file is the description for others, with the history of the version.

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
