//! Reads the bytes of one trace file. The file can be closed in between, for runs with more files than a process may
//! open.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use zerocopy::IntoBytes as _;

use super::extent::{end_of_lines, end_of_text};
use crate::files;

/// A file that is read from start to end, and whose descriptor can be closed in between.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    file: Option<File>,
    /// Device and inode, which detect that the file was replaced.
    identity: (u64, u64),
    at: u64,
    /// Where reading stops, in bytes from the start; `None` reads to the end of the file.
    limit: Option<u64>,
}

/// How much of a file can be read by now, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where the last complete line ends.
    pub(crate) lines: u64,
    /// Where the text ends. The text after the last complete line may be a partial record.
    pub(crate) text: u64,
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        let identity = identity(&file)?;
        Ok(Self { path: path.to_owned(), file: Some(file), identity, at: 0, limit: None })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Continues reading at `at`, in bytes from the start.
    pub(crate) fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.reopen()?.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }

    /// Reads `count` words from `at` on, in bytes from the start, or fewer at the end of the file. The words keep their
    /// memory. The position of [`Self::go_to`] stays.
    pub(crate) fn words_at(&mut self, at: u64, count: usize, words: &mut Vec<u64>) -> io::Result<()> {
        if words.len() < count {
            words.resize(count, 0);
        }
        words.truncate(count);
        let file = self.reopen()?;
        let mut read = 0;
        while let Some(rest) = words.as_mut_bytes().get_mut(read..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    words.clear();
                    return Err(error);
                }
            }
        }
        words.truncate(read / size_of::<u64>());
        for word in words {
            *word = u64::from_le(*word);
        }
        Ok(())
    }

    /// Sets where reading stops, in bytes from the start; `None` reads to the end of the file.
    pub(crate) fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// The size of the file in bytes; `None` if it was removed or replaced.
    pub(crate) fn size(&self) -> Option<u64> {
        let there = fs::metadata(&self.path).ok()?;
        ((there.dev(), there.ino()) == self.identity).then_some(there.len())
    }

    /// How much of the file can be read, at least `before`. `None` if the file was truncated, removed or replaced.
    pub(crate) fn extent(&mut self, before: Extent) -> io::Result<Option<Extent>> {
        let Some(size) = self.size().filter(|size| *size >= before.text) else { return Ok(None) };
        let file = self.reopen()?;
        // The search begins at the old end of the text: a writer never overwrites text with spaces.
        let text = end_of_text(file, before.text, size);
        Ok(Some(Extent { lines: end_of_lines(file, before.lines, text), text }))
    }

    /// Closes the descriptor. The next read opens the file again, and begins `unread` bytes before the present
    /// position.
    pub(crate) fn release(&mut self, unread: u64) {
        self.file = None;
        self.at -= unread;
    }

    /// The open file. Opens it again if it was released.
    fn reopen(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut file = files::open(&self.path)?;
            if identity(&file)? != self.identity {
                return Err(io::Error::other("it was replaced while it was read"));
            }
            file.seek(SeekFrom::Start(self.at))?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("it is not open"))
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.at));
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..room).filter(|buffer| !buffer.is_empty()) else { return Ok(0) };
        let count = self.reopen()?.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A source that is read through a buffer. The buffer has memory only while it is needed.
#[derive(Debug)]
pub(crate) struct Buffered {
    source: Source,
    bytes: Vec<u8>,
    /// The size of the buffer in bytes.
    capacity: usize,
    /// Which bytes of the buffer are not consumed yet.
    rest: Range<usize>,
}

impl Buffered {
    /// With a buffer of `capacity` bytes.
    pub(crate) fn new(capacity: usize, source: Source) -> Self {
        Self { source, bytes: Vec::new(), capacity, rest: 0..0 }
    }

    /// The source.
    pub(crate) fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    /// Reads the next bytes, after all that are in the buffer.
    #[inline(never)]
    fn refill(&mut self) -> io::Result<()> {
        self.bytes.resize(self.capacity, 0);
        self.rest = 0..0;
        self.rest.end = self.source.read(&mut self.bytes)?;
        Ok(())
    }

    /// Frees the buffer and closes the descriptor until the next read.
    pub(crate) fn release(&mut self) {
        self.source.release(self.rest.len() as u64);
        self.rest = 0..0;
        self.bytes = Vec::new();
    }
}

impl Read for Buffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Buffered {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            self.refill()?;
        }
        Ok(self.bytes.get(self.rest.clone()).unwrap_or_default())
    }

    #[inline]
    fn consume(&mut self, count: usize) {
        self.rest.start = (self.rest.start + count).min(self.rest.end);
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_continues_after_a_release() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "onetwo").unwrap();
        let mut source = Source::open(&path).unwrap();
        let mut three = [0; 3];
        source.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"one");
        source.release(0);
        source.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"two");
    }

    #[test]
    fn a_buffer_goes_on_where_it_was_freed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "onetwothree").unwrap();
        let mut buffered = Buffered::new(4, Source::open(&path).unwrap());
        let mut text = String::new();
        for _ in 0..3 {
            let next = buffered.fill_buf().unwrap()[..2].to_owned();
            text.push_str(str::from_utf8(&next).unwrap());
            buffered.consume(2);
            buffered.release();
        }
        buffered.read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwothree");
    }

    #[test]
    fn reading_a_replaced_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let mut source = Source::open(&path).unwrap();
        source.release(0);
        fs::write(folder.path().join("other"), "two").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(source.read(&mut [0; 3]).unwrap_err().to_string().contains("replaced"));
    }
}
