//! The bytes of one trace file, also where a run has more files than a process may have open.

use std::{
    fs::{self, File},
    io::{self, Read, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::extent::{end_of_lines, end_of_text};

/// A file that is read from start to end, and that can be let go of in between.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    file: Option<File>,
    /// Device and inode: a file that was put in its place is another one.
    identity: (u64, u64),
    at: u64,
    /// Up to where it is read, in bytes from the start; to its end without one.
    limit: Option<u64>,
}

/// How much of a file can be read by now, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where the last complete line ends.
    pub(crate) lines: u64,
    /// Where the text ends; what is between may be half a record.
    pub(crate) text: u64,
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = identity(&file)?;
        Ok(Self { path: path.to_owned(), file: Some(file), identity, at: 0, limit: None })
    }

    /// Its device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Reads on from a place, in bytes from the start.
    pub(crate) fn go_to(&mut self, at: u64) -> io::Result<()> {
        self.wake()?.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }

    /// Reads no further than this.
    pub(crate) fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// Its size in bytes; nothing if another file is in its place.
    pub(crate) fn size(&self) -> Option<u64> {
        let there = fs::metadata(&self.path).ok()?;
        ((there.dev(), there.ino()) == self.identity).then_some(there.len())
    }

    /// How much of it can be read, where `before` could be read before. Nothing if the file was cut or replaced.
    pub(crate) fn extent(&mut self, before: Extent) -> io::Result<Option<Extent>> {
        let Some(size) = self.size().filter(|size| *size >= before.text) else { return Ok(None) };
        let file = self.wake()?;
        // What was half a record may have become spaces again only in a file of somebody else.
        let text = end_of_text(file, before.text, size);
        Ok(Some(Extent { lines: end_of_lines(file, before.lines, text), text }))
    }

    /// Gives the descriptor back; the next read opens the file again.
    pub(crate) fn rest(&mut self) {
        self.file = None;
    }

    fn wake(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut file = File::open(&self.path)?;
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
        let count = self.wake()?.read(buffer)?;
        self.at += count as u64;
        Ok(count)
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
    fn reading_goes_on_where_it_rested() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "onetwo").unwrap();
        let mut source = Source::open(&path).unwrap();
        let mut three = [0; 3];
        source.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"one");
        source.rest();
        source.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"two");
    }

    #[test]
    fn a_file_that_was_replaced_is_not_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let mut source = Source::open(&path).unwrap();
        source.rest();
        fs::write(folder.path().join("other"), "two").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(source.read(&mut [0; 3]).unwrap_err().to_string().contains("replaced"));
    }
}
