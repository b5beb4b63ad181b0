//! A file that is opened by its path each time and recognized by its inode, because no descriptor may stay open.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::{io, ptr::NonNull};

use urscope_schema::trace::write::{self, UNFINISHED};

use super::plain_file;

/// The mode of a file: a trace shows addresses, paths and a command line.
const OWNER_ONLY: u32 = 0o600;

/// The most names that are tried if others exist.
const NAME_LIMIT: u32 = 100;

/// The path of a file that this process made, and its device and inode.
pub struct NamedFile {
    path: PathBuf,
    /// The path until it is published.
    unfinished: Option<PathBuf>,
    inode: (u64, u64),
}

impl NamedFile {
    /// Creates a file that only its owner can read and write. It is at `path` when it is published: a process that is
    /// killed before leaves no incomplete file there. An existing file is not changed (`AlreadyExists`).
    pub(crate) fn create(path: &Path) -> io::Result<(Self, File)> {
        if plain_file::status(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(OWNER_ONLY)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&unfinished)?;
        // Despite the umask of the process, the owner can open the file again when it grows.
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
        let inode = identity(&file)?;
        Ok((Self { path: path.into(), unfinished: Some(unfinished.into()), inode }, file))
    }

    /// Moves the file to its path, or to another name if another user has made a file there. On an error there is no
    /// file.
    pub fn publish(&mut self) -> io::Result<()> {
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        let mut failed = None;
        for number in 0..NAME_LIMIT {
            let Some(path) = self.name(number) else { break };
            // An earlier file of this process is not replaced.
            if number > 0 && plain_file::status(&path).is_ok() {
                continue;
            }
            match fs::rename(unfinished, &path) {
                Ok(()) => {
                    (self.path, self.unfinished) = (path, None);
                    return Ok(());
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.remove();
        Err(failed.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }

    /// The path with this number; 0 for the original one.
    fn name(&self, number: u32) -> Option<PathBuf> {
        if number == 0 {
            return Some(self.path.clone());
        }
        Some(self.path.with_file_name(write::other_name(self.path.file_name()?.to_str()?, number)?))
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(self.place());
    }

    fn place(&self) -> &Path {
        self.unfinished.as_ref().unwrap_or(&self.path)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file again; an error if another file is at its path.
    pub(crate) fn reopen(&self) -> io::Result<File> {
        // Another file at its path must not block this process.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(self.place())?;
        if identity(&file)? == self.inode {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "another file is at the path of the trace"))
        }
    }
}

/// A byte of a file that stays mapped, and is writable without a descriptor and on a full disk.
pub struct MappedByte {
    page: NonNull<u8>,
    at: u64,
}

// SAFETY: the page stays mapped, and is written by atomic stores only.
unsafe impl Send for MappedByte {}

const PAGE: u64 = 4096;

impl NamedFile {
    /// Maps the page of the byte at an offset.
    pub fn map_byte(&self, at: u64) -> io::Result<MappedByte> {
        let file = self.reopen()?;
        let page = plain_file::map(&file, at - at % PAGE, PAGE as usize)?;
        // A child must not write into its parent's file. SAFETY: the mapping that has just been made.
        unsafe { libc::madvise(page.as_ptr(), PAGE as usize, libc::MADV_DONTFORK) };
        Ok(MappedByte { page: page.cast(), at })
    }

    /// Writes the byte; false if somebody else has truncated or replaced the file.
    pub fn write_mapped(&self, byte: &MappedByte, value: u8) -> bool {
        let is_there = plain_file::status(self.place())
            .is_ok_and(|status| (status.st_dev, status.st_ino) == self.inode && status.st_size as u64 > byte.at);
        if is_there {
            // SAFETY: the byte lies in the page, which is mapped, and in the file.
            let place = unsafe { AtomicU8::from_ptr(byte.page.as_ptr().add((byte.at % PAGE) as usize)) };
            place.store(value, Ordering::Relaxed);
        }
        is_there
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let status = plain_file::status_of(file)?;
    Ok((status.st_dev, status.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_somebody_else_takes_is_replaced_by_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (mut file, _) = NamedFile::create(&path("urscope-a-7-9.fxt")).unwrap();
        // A file cannot be moved over a directory.
        fs::create_dir(path("urscope-a-7-9.fxt")).unwrap();
        fs::write(path("urscope-a-7-9-1.fxt"), "an earlier program of the process").unwrap();
        file.publish().unwrap();
        assert_eq!(file.path(), path("urscope-a-7-9-2.fxt"));
        assert!(file.reopen().is_ok() && fs::read(path("urscope-a-7-9-1.fxt")).unwrap().starts_with(b"an earlier"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
