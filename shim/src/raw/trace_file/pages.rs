//! A file that grows by mapped pieces. Its unwritten part is white space.
//!
//! A reader that accepts trailing white space can read the file at any time. Spaces are written by `pwrite`, so the
//! file never has the NULs of an extended file, and its blocks exist before anything is stored into the mapping. No
//! descriptor may stay open: the program may close it and reuse its number. So the file is opened again each time it
//! grows, and recognized by its inode.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path, ptr::NonNull};

use urscope_schema::trace::chrome::write::STEP;

use crate::raw::files::{named_file::NamedFile, plain_file};
use crate::raw::signals::sync;

/// The number of bytes by which the file grows.
pub const PIECE: u64 = 1 << 20;

const PAGE: u64 = 4096;

/// The contents of new parts of the file.
static SPACES: [u8; 1 << 16] = [b' '; 1 << 16];

/// A growing file; records are appended with [`Self::append`].
pub struct Pages {
    /// Its name.
    pub name: NamedFile,
    /// The mapping of `[mapped_from, capacity)`; nothing after [`Self::close`].
    mapping: Option<NonNull<u8>>,
    mapped_from: u64,
    used: u64,
    capacity: u64,
    /// Whether the file has been truncated by others.
    truncated: bool,
}

// SAFETY: the mapping belongs to this value alone; a mapping is not bound to a thread.
unsafe impl Send for Pages {}

impl Pages {
    /// Creates a file that only its owner can read and write. It is at its path after [`NamedFile::publish`]. An
    /// existing file is not changed (`AlreadyExists`).
    pub fn create(path: &Path) -> io::Result<Self> {
        let (name, file) = NamedFile::create(path)?;
        let mut pages = Self { name, mapping: None, mapped_from: 0, used: 0, capacity: 0, truncated: false };
        if let Err(error) = pages.grow_with(&file) {
            // It has no records yet, and an empty file is no trace.
            pages.name.remove();
            return Err(error);
        }
        Ok(pages)
    }

    /// The number of bytes that have been appended.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The number of bytes that can be appended before the file must grow.
    pub fn room(&self) -> u64 {
        self.capacity - self.used
    }

    /// Makes the file one [`PIECE`] larger. On an error it does not change.
    pub fn grow(&mut self) -> io::Result<()> {
        let file = self.name.reopen()?;
        self.expect_whole(&file)?;
        self.grow_with(&file)
    }

    /// Fails if the file was truncated by others. A store into its pages would then raise SIGBUS, so nothing is
    /// appended any more.
    fn expect_whole(&mut self, file: &File) -> io::Result<()> {
        let size = plain_file::status_of(file)?.st_size as u64;
        if self.mapping.is_some() && size < self.capacity {
            self.truncated = true;
            self.unmap();
        }
        if !self.truncated {
            return Ok(());
        }
        Err(plain_file::taken())
    }

    fn grow_with(&mut self, file: &File) -> io::Result<()> {
        let capacity = self.capacity + PIECE;
        if capacity > crate::raw::processes::process::file_size_limit() {
            return Err(plain_file::too_large());
        }
        plain_file::write_copies(file, &SPACES, self.capacity, capacity)?;
        let from = self.used - self.used % PAGE;
        let length = (capacity - from) as usize;
        let mapping = plain_file::map(file, from, length)?;
        // Populating all pages at once takes half as long as one by one. Kernels before 5.14 cannot.
        // SAFETY: the new mapping; its contents do not change.
        unsafe { libc::madvise(mapping.as_ptr(), length, libc::MADV_POPULATE_WRITE) };
        self.unmap();
        self.mapping = Some(mapping.cast());
        self.mapped_from = from;
        self.capacity = capacity;
        Ok(())
    }

    /// Appends `bytes` if they fit into [`Self::room`]; false if not.
    ///
    /// The bytes are stored in order, [`STEP`] at a time: a process that is killed in between leaves a prefix of them.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        let (Some(mapping), true) = (self.mapping, bytes.len() as u64 <= self.room()) else { return false };
        // SAFETY: `used` lies within the mapping, which starts at `mapped_from`.
        let mut to = unsafe { mapping.add((self.used - self.mapped_from) as usize) };
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for step in steps {
            // SAFETY: `room` covers all of `bytes`.
            unsafe {
                sync::store_unaligned(to.as_ptr().cast(), u64::from_ne_bytes(*step));
                to = to.add(step.len());
            }
        }
        for byte in rest {
            // SAFETY: as above; one byte cannot be torn.
            unsafe {
                to.write_volatile(*byte);
                to = to.add(1);
            }
        }
        self.used += bytes.len() as u64;
        true
    }

    /// Writes `end` and truncates the file after it. Nothing can be appended any more, but [`Self::close`] can be
    /// called again with another end.
    pub fn close(&mut self, end: &[u8]) -> io::Result<()> {
        let file = self.name.reopen()?;
        self.expect_whole(&file)?;
        let length = self.used + end.len() as u64;
        if length <= crate::raw::processes::process::file_size_limit() {
            file.write_all_at(end, self.used)?;
        } else if self.append(end) {
            // The limit is now lower than the size of the file: a write would raise SIGXFSZ. A store into the mapping
            // or a truncation does not.
            self.used -= end.len() as u64;
        } else {
            return Err(plain_file::too_large());
        }
        file.set_len(length)?;
        self.unmap();
        Ok(())
    }

    /// Appends to a closed file, and writes its end again.
    pub fn append_closed(&mut self, bytes: &[u8], end: &[u8]) -> io::Result<()> {
        let file = self.name.reopen()?;
        self.expect_whole(&file)?;
        if self.used + (bytes.len() + end.len()) as u64 > crate::raw::processes::process::file_size_limit() {
            return Err(plain_file::too_large());
        }
        file.write_all_at(&[bytes, end].concat(), self.used)?;
        self.used += bytes.len() as u64;
        Ok(())
    }

    /// Unmaps the file, which belongs to the parent in a forked child.
    pub fn abandon(mut self) {
        self.unmap();
    }

    fn unmap(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            // SAFETY: `grow_with` made the mapping with this length, and there are no references into it.
            unsafe { libc::munmap(mapping.as_ptr().cast(), (self.capacity - self.mapped_from) as usize) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;

    fn path(name: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        (directory, path)
    }

    fn published(path: &Path) -> Pages {
        let mut pages = Pages::create(path).unwrap();
        pages.name.publish().unwrap();
        pages
    }

    #[test]
    fn a_file_is_at_its_path_once_it_is_published() {
        let (directory, path) = path("t");
        let mut pages = Pages::create(&path).unwrap();
        assert!(pages.append(b"one") && !path.exists());
        pages.name.publish().unwrap();
        assert!(fs::read(&path).unwrap().starts_with(b"one "));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        pages.grow().unwrap();
    }

    #[test]
    fn a_growing_file_is_text_and_spaces_at_any_moment() {
        let (_directory, path) = path("t");
        let mut pages = published(&path);
        let mut expected = Vec::new();
        for n in 0..20_000_u32 {
            let line = format!("line {n} {}\n", "x".repeat((n % 200) as usize));
            if line.len() as u64 > pages.room() {
                pages.grow().unwrap();
            }
            assert!(pages.append(line.as_bytes()));
            expected.extend(line.bytes());
        }
        let bytes = fs::read(&path).unwrap();
        assert_eq!(&bytes[..expected.len()], &expected[..]);
        assert!(bytes[expected.len()..].iter().all(|byte| *byte == b' '));
        assert_eq!(bytes.len() as u64 % PIECE, 0);
        pages.close(b"]").unwrap();
        expected.extend(b"]");
        assert_eq!(fs::read(&path).unwrap(), expected);
    }

    #[test]
    fn a_closed_file_takes_more_in_front_of_its_end() {
        let (_directory, path) = path("t");
        let mut pages = published(&path);
        assert!(pages.append(b"one"));
        pages.close(b"]").unwrap();
        assert!(!pages.append(b"two"));
        pages.append_closed(b"two", b"!]").unwrap();
        pages.append_closed(b"three", b"!!]").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"onetwothree!!]");
    }

    #[test]
    fn a_file_that_exists_is_not_touched() {
        let (_directory, path) = path("t");
        fs::write(&path, "mine").unwrap();
        assert_eq!(Pages::create(&path).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_file_that_was_truncated_is_not_written_to() {
        let (_directory, path) = path("t");
        let mut pages = published(&path);
        assert!(pages.append(b"one"));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        // A store into the mapping would end this test by SIGBUS.
        assert!(pages.grow().is_err() && pages.close(b"]").is_err());
        assert!(!pages.append(b"two"));
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn another_file_at_the_path_is_not_written_to() {
        let (_directory, path) = path("t");
        let mut pages = published(&path);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another").unwrap();
        assert!(pages.grow().is_err() && pages.close(b"]").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"another");
    }
}
