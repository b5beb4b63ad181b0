//! Files that a user named.

use std::io::{self, Read};
use std::time::{Duration, Instant};
use std::{fs::File, os::fd::AsFd as _, path::Path, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, Stat, fcntl_setfl, fstat, ftruncate};
use rustix::io::Errno;
use urscope_schema::size;

use super::{PATIENCE, is_shared, kind, owners, place::ResolvedPath, refuse_untrusted, refused};

/// How often it is tried to open a pipe that nobody reads yet.
const PERIOD: Duration = Duration::from_millis(20);

/// Opens a regular file for reading, whoever it belongs to.
pub fn open(path: &Path) -> io::Result<File> {
    open_of(path, |_| true)
}

/// Opens a regular file for reading, if its owner `is_trusted`.
pub fn open_of(path: &Path, is_trusted: impl Fn(u32) -> bool) -> io::Result<File> {
    let file = ResolvedPath::follow(path)?.open(OFlags::RDONLY, 0)?;
    refuse_untrusted(&fstat(&file)?, is_trusted)?;
    Ok(file.into())
}

/// Reads a file as a whole, or what comes through a pipe until its end. It is an error if there are more than `limit`
/// bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = ResolvedPath::follow(path)?.open(OFlags::RDONLY, 0)?.into();
    bounded(Patient { file, patience: PATIENCE }, limit)
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
struct Patient {
    file: File,
    patience: Duration,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let tv_sec = self.patience.as_secs() as i64;
            let tv_nsec = self.patience.subsec_nanos().into();
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&Timespec { tv_sec, tv_nsec })) {
                Ok(0) => {
                    let why = format!("nothing came through it within {} s", self.patience.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.file.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Makes a file, or empties the one that is there. Its mode is that of the mask of this process.
///
/// In a directory that others may write to, nothing of another user is opened, unless the whole directory is theirs,
/// and where everyone may write to it no file with several links, as `fs.protected_regular` and
/// `fs.protected_hardlinks` of the kernel (`proc_sys_fs(5)`) have it.
pub fn create(path: &Path) -> io::Result<File> {
    let began = Instant::now();
    let (place, file) = loop {
        let place = ResolvedPath::follow(path)?;
        let flags = match &place.there {
            Some(there) => {
                refuse_foreign(&place, there)?;
                OFlags::empty()
            }
            None if place.is_open_file => OFlags::empty(),
            None => OFlags::CREATE | OFlags::EXCL,
        };
        let is_pipe = place.there.as_ref().is_some_and(|there| kind(there) == FileType::Fifo);
        match place.open(OFlags::WRONLY | flags, 0o666) {
            Ok(file) => break (place, file),
            // Another process made it meanwhile.
            Err(Errno::EXIST) if began.elapsed() < PATIENCE => {}
            // Nobody reads it yet.
            Err(Errno::NXIO) if is_pipe && began.elapsed() < PATIENCE => thread::sleep(PERIOD),
            Err(error) => return Err(error.into()),
        }
    };
    let status = fstat(&file)?;
    if !place.is_open_file {
        // Something else may have taken the place of what was checked.
        refuse_foreign(&place, &status)?;
    }
    if kind(&status) == FileType::RegularFile {
        ftruncate(&file, 0)?;
    }
    fcntl_setfl(file.as_fd(), OFlags::empty())?;
    Ok(file.into())
}

/// Refuses a file or a pipe that another user may have put at a place.
fn refuse_foreign(place: &ResolvedPath, file: &Stat) -> io::Result<()> {
    let folder = fstat(&place.folder)?;
    let is_pipe = kind(file) == FileType::Fifo;
    if !is_shared(&folder) || !is_pipe && kind(file) != FileType::RegularFile {
        return Ok(());
    }
    // Whoever has no number in this user namespace is not always the same user.
    let is_theirs = !is_pipe && file.st_uid == folder.st_uid && file.st_uid != owners().root;
    if !owners().have(file.st_uid) && !is_theirs {
        return Err(refused(format!("it belongs to the user {}", file.st_uid)));
    }
    let is_open_to_all = !owners().have(folder.st_uid) || folder.st_mode & 0o002 != 0;
    if is_open_to_all && file.st_nlink > 1 {
        return Err(refused("it has several links"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::os::unix::{fs::symlink, net::UnixListener};

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn pipe(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn what_is_read_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "12345").unwrap();
        symlink("file", folder.path().join("link")).unwrap();
        assert_eq!(read(&folder.path().join("link"), 5).unwrap(), b"12345");
        for (path, limit) in [(&*file, 4), (Path::new("/dev/zero"), 1 << 20)] {
            let error = read(path, limit).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert!(error.to_string().contains(&size(limit)), "{error}");
        }
        assert_eq!(read(folder.path(), 5).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read(&folder.path().join("none"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_but_not_waited_for_without_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        pipe(&path);
        let slow = thread::spawn({
            let path = path.clone();
            move || {
                let mut out = OpenOptions::new().write(true).open(path).unwrap();
                for part in ["one", "two"] {
                    thread::sleep(PERIOD);
                    out.write_all(part.as_bytes()).unwrap();
                }
            }
        });
        assert_eq!(read(&path, 100).unwrap(), b"onetwo");
        slow.join().unwrap();
        let file = ResolvedPath::follow(&path).unwrap().open(OFlags::RDONLY, 0).unwrap().into();
        let error = bounded(Patient { file, patience: PERIOD }, 100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let _writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn an_output_may_be_a_link_a_pipe_or_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        create(&path("new")).unwrap().write_all(b"longer").unwrap();
        symlink("new", path("link")).unwrap();
        create(&path("link")).unwrap().write_all(b"short").unwrap();
        assert_eq!(fs::read(path("new")).unwrap(), b"short");
        symlink("made", path("dangling")).unwrap();
        create(&path("dangling")).unwrap();
        assert!(path("made").is_file());
        fs::hard_link(path("new"), path("second")).unwrap();
        create(&path("second")).unwrap();
        create(Path::new("/dev/null")).unwrap().write_all(b"x").unwrap();

        pipe(&path("pipe"));
        let late = thread::spawn({
            let path = path("pipe");
            move || {
                thread::sleep(PERIOD);
                read(&path, 1 << 20).unwrap()
            }
        });
        // More than fits into a pipe, so that writing waits.
        create(&path("pipe")).unwrap().write_all(&vec![7; 200_000]).unwrap();
        assert_eq!(late.join().unwrap().len(), 200_000);
        assert_eq!(create(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let _socket = UnixListener::bind(path("socket")).unwrap();
        assert_eq!(create(&path("socket")).unwrap_err().raw_os_error(), Some(Errno::NXIO.raw_os_error()));
    }

    #[test]
    fn a_file_with_several_links_is_not_overwritten_where_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let one = folder.path().join("one");
        let two = folder.path().join("two");
        fs::write(&one, "mine").unwrap();
        create(&one).unwrap().write_all(b"still mine").unwrap();
        fs::hard_link(&one, &two).unwrap();
        assert!(create(&two).unwrap_err().to_string().contains("several links"));
        assert_eq!(fs::read(&one).unwrap(), b"still mine");
    }
}
