//! A file that is opened by its path each time and recognized by its inode, because no descriptor may stay open.

use std::fs::{self, File, Permissions};
use std::os::{fd::AsRawFd as _, unix::fs::PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{io, sync::Arc};

use urscope_schema::trace::{UNFINISHED, other_name};

use super::plain_file::{self, OWNER_ONLY};

/// The most names that are tried if others exist.
const NAME_LIMIT: u32 = 100;

/// The path of a file that this process made, and its device and inode.
pub struct NamedFile {
    path: Arc<Path>,
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
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = plain_file::open(Path::new(&unfinished), flags)?;
        let status = plain_file::status_of(&file)?;
        if status.st_mode & OWNER_ONLY != OWNER_ONLY {
            // Despite the umask of the process, the owner can open the file again when it grows.
            file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
        }
        let inode = (status.st_dev, status.st_ino);
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
                    (self.path, self.unfinished) = (path.into(), None);
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
            return Some(self.path.to_path_buf());
        }
        Some(self.path.with_file_name(other_name(self.path.file_name()?.to_str()?, number)?))
    }

    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(self.place());
    }

    fn place(&self) -> &Path {
        self.unfinished.as_deref().unwrap_or(&self.path)
    }

    /// The path of the file.
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Opens the file again; an error if another file is at its path.
    ///
    /// If a thread closes a standard stream meanwhile, the descriptor may have its number for a moment. What is written
    /// to the stream then is behind the end of the file until it grows or is truncated.
    pub(crate) fn reopen(&self) -> io::Result<File> {
        // Another file at its path must not block this process.
        let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_APPEND;
        let file = plain_file::open(self.place(), flags)?;
        if identity(&file)? != self.inode {
            return Err(plain_file::taken());
        }
        // SAFETY: fcntl(2) clears the flags of this open file that it can clear; O_APPEND is one.
        let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) };
        if answer == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let status = plain_file::status_of(file)?;
    Ok((status.st_dev, status.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn a_file_that_is_opened_again_is_written_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urscope-a-7-9.fxt");
        let (mut file, first) = NamedFile::create(&path).unwrap();
        first.write_all_at(b"one two", 0).unwrap();
        file.publish().unwrap();
        file.reopen().unwrap().write_all_at(b"six", 0).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"six two");
    }

    #[test]
    fn a_name_that_somebody_else_takes_is_replaced_by_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (mut file, _) = NamedFile::create(&path("urscope-a-7-9.fxt")).unwrap();
        // A file cannot be moved over a directory.
        fs::create_dir(path("urscope-a-7-9.fxt")).unwrap();
        fs::write(path("urscope-a-7-9-1.fxt"), "an earlier program of the process").unwrap();
        file.publish().unwrap();
        assert_eq!(**file.path(), *path("urscope-a-7-9-2.fxt"));
        assert!(file.reopen().is_ok() && fs::read(path("urscope-a-7-9-1.fxt")).unwrap().starts_with(b"an earlier"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
