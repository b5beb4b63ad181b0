//! Files that a user named.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, FileType, OFlags, Stat, fcntl_setfl, fstat, ftruncate, lstat, stat},
    io::Errno,
};
use urscope_schema::size;

use super::{PATIENCE, is_shared, kind, not_regular, opened, owners, parent, refused};

/// How often it is tried to open a pipe that nobody reads yet.
const PERIOD: Duration = Duration::from_millis(20);

/// Refuses a link of another user. Returns what is at the path.
pub(super) fn refuse_foreign_link(path: &Path) -> io::Result<Stat> {
    let there = lstat(path)?;
    if kind(&there) == FileType::Symlink && !owners().have(there.st_uid) {
        return Err(refused(format!(
            "it is a symbolic link of the user {}; name the file that it leads to",
            there.st_uid
        )));
    }
    Ok(there)
}

/// The flag that keeps what is at a path now from being replaced by a link.
fn follow(there: &Stat) -> OFlags {
    if kind(there) == FileType::Symlink { OFlags::empty() } else { OFlags::NOFOLLOW }
}

/// Opens a regular file for reading, whoever it belongs to.
pub fn open(path: &Path) -> io::Result<File> {
    let there = refuse_foreign_link(path)?;
    let file = opened(CWD, path, OFlags::RDONLY | follow(&there), 0)?;
    if kind(&fstat(&file)?) == FileType::RegularFile { Ok(file.into()) } else { Err(not_regular()) }
}

/// Reads a file as a whole, or what comes through a pipe until its end. It is an error if there are more than `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let there = refuse_foreign_link(path)?;
    let file = File::from(opened(CWD, path, OFlags::RDONLY | follow(&there), 0)?);
    bounded(Patient(file), limit)
}

/// Reads to the end. It is an error if there are more than `limit` bytes.
pub fn bounded(from: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let most = size(limit);
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it holds more than {most}, the most that is read of it"),
        ));
    }
    Ok(bytes)
}

/// A file that is read when there is something to read.
struct Patient(File);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let limit = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)) {
                Ok(0) => {
                    let why = format!("nothing came through it within {} s", PATIENCE.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Makes a file, or empties the one that is there. Its mode is that of the mask of this process.
///
/// In a directory that others may write to, nothing of another user is opened, unless the whole directory is theirs, and no file with
/// several links, as `fs.protected_regular` and `fs.protected_hardlinks` of the kernel (`proc_sys_fs(5)`) have it.
pub fn create(path: &Path) -> io::Result<File> {
    let began = Instant::now();
    let file = loop {
        let (flags, is_pipe) = match refuse_foreign_link(path) {
            Ok(there) => {
                refuse_foreign_file(path, &there)?;
                let create = if kind(&there) == FileType::Symlink { OFlags::CREATE } else { OFlags::empty() };
                (create | follow(&there), kind(&there) == FileType::Fifo)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, false)
            }
            Err(error) => return Err(error),
        };
        match opened(CWD, path, OFlags::WRONLY | flags, 0o666) {
            Ok(file) => break file,
            // Another process made it meanwhile, or it is a pipe that nobody reads yet.
            Err(Errno::EXIST) if began.elapsed() < PATIENCE => {}
            Err(Errno::NXIO) if is_pipe && began.elapsed() < PATIENCE => thread::sleep(PERIOD),
            Err(error) => return Err(error.into()),
        }
    };
    let status = fstat(&file)?;
    // What was checked by its path may have been replaced.
    if !matches!(lstat(path).map(|there| kind(&there)), Ok(FileType::Symlink)) {
        refuse_foreign_file(path, &status)?;
    }
    if kind(&status) == FileType::RegularFile {
        ftruncate(&file, 0)?;
    }
    fcntl_setfl(file.as_fd(), OFlags::empty())?;
    Ok(file.into())
}

/// Refuses a file or a pipe that another user may have put there.
fn refuse_foreign_file(path: &Path, file: &Stat) -> io::Result<()> {
    let folder = stat(parent(path))?;
    if !matches!(kind(file), FileType::RegularFile | FileType::Fifo) || !is_shared(&folder) {
        return Ok(());
    }
    if !owners().have(file.st_uid) && file.st_uid != folder.st_uid {
        return Err(refused(format!("it belongs to the user {}", file.st_uid)));
    }
    if file.st_nlink > 1 {
        return Err(refused("it has several links"));
    }
    Ok(())
}
