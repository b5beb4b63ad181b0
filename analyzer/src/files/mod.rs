//! Opens files in places that other users may write to.
//!
//! Traces, reports and what belongs to them are opened here. There are two kinds of files:
//!
//! * Those whose names urscope chose, as `process-times.jsonl`: [`Folder::own_file`]. Each must be a regular file with
//!   one link that belongs to this user or to root. A link is never followed.
//! * Those that a user named: [`open`], [`read`] and [`create`]. They may be links, pipes or terminals, but no link of
//!   another user is followed on the way to them, and no file of another user is overwritten.
//!
//! Opening a file never waits for another process, except for the other end of a pipe that the user named, and for that
//! at most [`PATIENCE`]. What is read as a whole has a limit. All descriptors are closed on exec.

mod folder;
mod named;
mod place;

use std::os::fd::{AsFd, OwnedFd};
use std::{io, path::Path, sync::OnceLock, time::Duration};

use rustix::fs::{FileType, Mode, OFlags, Stat, openat, stat};
use urscope_schema::host::owners::{Owners, SYSTEM};

pub use folder::{Folder, WriteMode};
pub use named::{bounded, create, open, open_of, read};

/// How long the other end of a pipe is waited for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The users whose files and directories are trusted.
pub fn owners() -> Owners {
    static OWNERS: OnceLock<Owners> = OnceLock::new();
    *OWNERS.get_or_init(|| {
        let user = rustix::process::geteuid().as_raw();
        Owners { user, root: stat("/").map_or(0, |root| root.st_uid) }
    })
}

/// The directory that a path is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file without waiting for anything.
fn opened(folder: impl AsFd, name: &Path, flags: OFlags, mode: u32) -> rustix::io::Result<OwnedFd> {
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    openat(folder, name, flags | always, Mode::from_raw_mode(mode))
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

fn identity(status: &Stat) -> (u64, u64) {
    (status.st_dev, status.st_ino)
}

/// Whether a directory with this status belongs to a trusted user.
fn is_trusted(folder: &Stat) -> bool {
    let is = |path: &str| stat(path).is_ok_and(|system| identity(&system) == identity(folder));
    owners().have(folder.st_uid) || folder.st_uid == owners().root && SYSTEM.iter().any(|path| is(path))
}

/// Whether another user may change what is in a directory with this status.
fn is_shared(folder: &Stat) -> bool {
    !is_trusted(folder) || folder.st_mode & 0o022 != 0
}

/// Refuses what is no regular file of a trusted user.
fn refuse_untrusted(file: &Stat, is_trusted: impl Fn(u32) -> bool) -> io::Result<()> {
    if kind(file) != FileType::RegularFile {
        Err(not_regular())
    } else if !is_trusted(file.st_uid) {
        Err(refused(format!("it belongs to the user {}", file.st_uid)))
    } else {
        Ok(())
    }
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.into())
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}
