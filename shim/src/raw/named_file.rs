//! A file that is opened by its path each time, because no descriptor may be kept, and recognised by its inode.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::plain_file;

/// The mode of a file: a trace shows addresses, paths and a command line.
const PRIVATE: u32 = 0o600;

/// What follows the name of a file until [`NamedFile::publish`].
const UNFINISHED: &str = ".unfinished";

/// The path of a file that this process made, and its device and inode.
pub(super) struct NamedFile {
    path: PathBuf,
    /// Where it is until it is published.
    unfinished: Option<PathBuf>,
    inode: (u64, u64),
}

impl NamedFile {
    /// Creates a file that only its owner can read and write, at `path` once it is published: a process that is killed before that
    /// leaves no file that cannot be read. An existing one is not touched (`AlreadyExists`).
    pub(super) fn create(path: &Path) -> io::Result<(Self, File)> {
        if plain_file::status(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&unfinished)?;
        // The mask of the process may have taken more away, and the file is opened again when it grows.
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
        let inode = identity(&file)?;
        Ok((Self { path: path.into(), unfinished: Some(unfinished.into()), inode }, file))
    }

    /// Moves the file to its path. On an error there is none.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        // The name contains the process and its start: nobody else makes this file meanwhile.
        if let Err(error) = fs::rename(unfinished, &self.path) {
            self.remove();
            return Err(error);
        }
        self.unfinished = None;
        Ok(())
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(self.place());
    }

    fn place(&self) -> &Path {
        self.unfinished.as_ref().unwrap_or(&self.path)
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file again; an error if another is at its path now.
    pub(super) fn reopen(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(self.place())?;
        if identity(&file)? == self.inode {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "another file is at the path of the trace"))
        }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let status = plain_file::status_of(file)?;
    Ok((status.st_dev, status.st_ino))
}
