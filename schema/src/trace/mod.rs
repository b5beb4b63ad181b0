//! The trace, in two forms that Perfetto opens as they are: a Chrome trace with one JSON line per record, and a binary
//! one.
//!
//! [`chrome`] and [`fxt`] write and read one form each. [`Record`] is what both have to say, [`packed`] has calls in
//! few words, and [`records`] are the records that are not calls. [`process_times`] describes a file beside the traces.
//! `FORMAT.md` in this folder specifies the format. Nothing here opens a file.

pub mod chrome;
mod file_names;
pub mod fxt;
pub mod packed;
pub mod process_times;
mod record;
pub mod records;

pub use file_names::{UNFINISHED, file_name, other_name, writer_of};
pub use record::{LINE_LIMIT, Record, Skipped, Why};

/// The two forms of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A Chrome trace: lines of JSON.
    #[default]
    Chrome,
    /// A Fuchsia trace ([`fxt`]), which costs the program less.
    Binary,
}

impl Form {
    /// Both forms.
    pub const ALL: [Self; 2] = [Self::Chrome, Self::Binary];

    /// The ending of the names of its files.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Chrome => ".json",
            Self::Binary => ".fxt",
        }
    }

    /// Splits the name of a trace file into what stands before its ending, and its form. `None` for another file.
    pub fn split(name: &str) -> Option<(&str, Self)> {
        let stem = |form: Self| Some((name.strip_suffix(form.ending())?, form));
        Self::ALL.into_iter().find_map(stem).filter(|(stem, _)| stem.starts_with("urscope-"))
    }
}

/// The version of the format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The `cat` of call records.
pub const CALL: &str = "api";

/// The `cat` of calls that the runtime makes inside of a recorded one. Nothing judges them.
pub const INNER: &str = "inner";

/// The `cat` of urscope's own notes.
pub const NOTE: &str = "urscope";
