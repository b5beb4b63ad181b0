//! The records of a trace file, whichever form it has.

use std::io::{self, BufRead as _, BufReader};

use urscope_schema::trace::chrome::read::Reader;
use urscope_schema::trace::fxt::{MAGIC, read::Strings};
use urscope_schema::trace::{Record, Skipped};
use urscope_schema::{call::Nanos, packed::PackedCall};

use super::chunks::ChunkReader;
use super::source::{Buffered, Extent, Source};

/// The size of the buffer that reads the rest of a growing file, in bytes.
const REMAINDER: usize = 1 << 12;

/// A file that is being read.
pub(crate) enum Input {
    /// The Chrome form.
    Lines {
        reader: Reader<Buffered>,
        /// How much of a growing file could be read when it was last checked; `None` if the file is read to its end.
        growing: Option<Extent>,
    },
    /// The binary form.
    Chunks(Box<ChunkReader>),
}

/// What a file turned out to be.
pub(crate) enum Kind {
    /// A file of one of the two forms, or an empty one.
    Trace(Input),
    /// A file that begins with zeros.
    Lost,
    /// Neither.
    NotATrace(&'static str),
}

impl Input {
    /// Opens a file. If it is `growing`, it is read up to its last complete line, or up to that time.
    pub(crate) fn open(mut source: Source, buffer: usize, growing: Option<Nanos>) -> io::Result<Kind> {
        let mut start = BufReader::with_capacity(size_of::<u64>(), source);
        let is_binary = start.fill_buf()?.strip_prefix(&MAGIC.to_le_bytes()).is_some();
        source = start.into_inner();
        source.go_to(0)?;
        if is_binary {
            return Ok(Kind::Trace(Self::Chunks(Box::new(ChunkReader::open(source, growing)?))));
        }
        let nothing = Extent { lines: 0, text: 0 };
        let growing = match growing {
            Some(_) => Some(source.extent(nothing)?.unwrap_or(nothing)),
            None => None,
        };
        source.go_to(0)?;
        source.set_limit(growing.map(|extent| extent.lines));
        let mut input = Buffered::new(buffer, source);
        Ok(match input.fill_buf()?.trim_ascii_start().first() {
            None | Some(b'[') => Kind::Trace(Self::Lines { reader: Reader::new(input), growing }),
            Some(b'{') => Kind::NotATrace("it begins with { and is other JSON"),
            Some(0) => Kind::Lost,
            Some(_) => Kind::NotATrace("it is neither JSON nor a Fuchsia trace"),
        })
    }

    /// The next record with its position, in bytes from the start of the file.
    pub(crate) fn next(&mut self) -> Option<io::Result<(u64, Result<Record, Skipped>)>> {
        match self {
            Self::Lines { reader, .. } => {
                let offset = reader.offset();
                Some(reader.next()?.map(|found| (offset, found)))
            }
            Self::Chunks(reader) => reader.next(),
        }
    }

    /// Adds the next records to `words`, packed, as long as they are calls and can be read at once, at most `limit`.
    /// Passes each to `each`, and returns their number.
    #[inline]
    pub(crate) fn next_calls(
        &mut self,
        words: &mut Vec<u64>,
        limit: usize,
        mut each: impl FnMut(&PackedCall<'_>),
    ) -> usize {
        let reader = match self {
            Self::Lines { reader, .. } => reader,
            Self::Chunks(reader) => return reader.next_calls(words, limit, each),
        };
        let mut count = 0;
        while count < limit {
            let start = words.len();
            let Some(()) = reader.next_call(words) else { break };
            if let Some(call) = words.get(start..).and_then(PackedCall::first_of) {
                each(&call);
            }
            count += 1;
        }
        count
    }

    /// Checks how much more can be read: before the time `written` all records have arrived. Without one, the process
    /// has ended, and its file is read to the end. False if the file was truncated, removed or replaced.
    pub(crate) fn grow(&mut self, written: Option<Nanos>) -> io::Result<bool> {
        match self {
            Self::Lines { reader, growing: Some(before) } => {
                let source = reader.input_mut().source();
                let Some(extent) = source.extent(*before)? else { return Ok(false) };
                let extent = written.map(|_| extent);
                source.set_limit(extent.map(|extent| extent.lines));
                if let Self::Lines { growing, .. } = self {
                    *growing = extent;
                }
                Ok(true)
            }
            Self::Chunks(reader) if reader.is_growing() => reader.grow(written),
            Self::Lines { .. } | Self::Chunks(_) => Ok(true),
        }
    }

    /// Another input for what can be read of a growing file as if its process had ended now; `None` if there is nothing
    /// more.
    pub(crate) fn remainder(&self, open: impl Fn() -> io::Result<Source>) -> io::Result<Option<Self>> {
        match self {
            Self::Lines { reader, growing } => {
                let Some(Extent { lines, text }) = growing.filter(|extent| extent.text > extent.lines) else {
                    return Ok(None);
                };
                let mut source = open()?;
                source.go_to(lines)?;
                source.set_limit(Some(text));
                let reader = reader.continued(Buffered::new(REMAINDER, source));
                Ok(Some(Self::Lines { reader, growing: None }))
            }
            Self::Chunks(reader) => Ok(Some(Self::Chunks(Box::new(reader.remainder(open()?)?)))),
        }
    }

    /// Whether a growing file may have an incomplete line behind the last complete one.
    pub(crate) fn has_part_of_a_line(&self) -> bool {
        matches!(self, Self::Lines { growing: Some(extent), .. } if extent.text > extent.lines)
    }

    /// Whether nothing more comes after the last record: the file is read to its end, or it has the closing bracket.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Lines { reader, growing } => growing.is_none() || reader.closed(),
            Self::Chunks(reader) => !reader.is_growing(),
        }
    }

    /// Whether the process closed the file, as far as it has been read.
    pub(crate) fn closed(&self) -> bool {
        match self {
            Self::Lines { reader, .. } => reader.closed(),
            Self::Chunks(reader) => reader.closed(),
        }
    }

    /// Whether a record was found that is earlier than one that had been returned.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, Self::Chunks(reader) if reader.is_late())
    }

    /// The number of bytes that have been read.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            Self::Lines { reader, .. } => reader.offset(),
            Self::Chunks(reader) => reader.offset(),
        }
    }

    /// The strings of a binary file, which records of it refer to.
    pub(crate) fn strings(&mut self) -> Option<Strings> {
        match self {
            Self::Lines { .. } => None,
            Self::Chunks(reader) => Some(reader.strings()),
        }
    }

    /// The bytes of the file.
    pub(crate) fn source(&mut self) -> &mut Source {
        match self {
            Self::Lines { reader, .. } => reader.input_mut().source(),
            Self::Chunks(reader) => reader.source(),
        }
    }

    /// Frees what can be read again, and closes the file's descriptor until the next read.
    pub(crate) fn release(&mut self) {
        match self {
            Self::Lines { reader, .. } => {
                reader.release();
                reader.input_mut().release();
            }
            Self::Chunks(reader) => reader.release(),
        }
    }
}
