//! Files by the oldest system calls: `open`, `read`, `pwritev`, `mkdir` and `fstat`.
//!
//! `stat` and `fstat` are made as system calls: a library that wraps those of the C library may be gone when the
//! process ends. The standard library calls `statx` for the size of a file. A seccomp filter of the program may kill
//! the process for a system call that the program does not make. So `std::fs::metadata`, `std::fs::read`,
//! `std::fs::read_to_string` and `std::fs::create_dir_all` are only used at the start of the process.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::{mem::MaybeUninit, os::unix::ffi::OsStrExt as _, path::Path, ptr::NonNull};

/// The most bytes that are read of a file. These are short files of the kernel.
const READ_LIMIT: u64 = 1 << 20;

/// The size of most of them.
const READ_CAPACITY: usize = 4096;

/// The contents of a short file: at most one mebibyte.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    // Enough for most of them. `Take` does not ask for the size.
    let mut bytes = Vec::with_capacity(READ_CAPACITY);
    open(path.as_ref(), libc::O_RDONLY)?.take(READ_LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The contents of a short file as text, with U+FFFD in place of what is no UTF-8; empty if it cannot be read.
pub fn text(path: impl AsRef<Path>) -> String {
    String::from_utf8_lossy(&read(path).unwrap_or_default()).into_owned()
}

/// The mode of a new file: a trace shows addresses, paths and a command line.
pub const OWNER_ONLY: libc::mode_t = 0o600;

/// Opens a file, with flags of open(2). Does not allocate.
pub fn open(path: &Path, flags: c_int) -> io::Result<File> {
    let opened = above_streams(|| {
        with_path(path, |path| {
            loop {
                // SAFETY: open(2) reads a C string.
                let opened = own(unsafe { libc::open(path, flags | libc::O_CLOEXEC, OWNER_ONLY) });
                if !matches!(&opened, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
                    return opened;
                }
            }
        })
    });
    opened.map(File::from)
}

/// Takes ownership of the descriptor that a system call returned, or reads errno at once.
pub fn own(answer: c_int) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call has just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// Makes a descriptor that is none of the standard streams. If the program has closed these, what it writes to them
/// fails as before, and does not land in the file.
pub fn above_streams(make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let _occupied = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO].map(|number| {
        let is_open = status_of_number(number).is_ok();
        // SAFETY: open(2) reads a C string. Reads and writes of such a descriptor fail as of a closed one.
        (!is_open).then(|| own(unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }))
    });
    let made = make()?;
    // A thread may have closed one meanwhile. A duplicate is above them.
    if made.as_raw_fd() > libc::STDERR_FILENO { Ok(made) } else { made.try_clone() }
}

/// The status of the file at `path`. Links are followed. Does not allocate, because a signal handler may call it.
pub fn status(path: &Path) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    with_path(path, |path| {
        // SAFETY: newfstatat(2) reads a C string, and fills the structure when it returns 0.
        let answer = unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, status.as_mut_ptr(), 0) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })?;
    // SAFETY: stat(2) has filled it.
    Ok(unsafe { status.assume_init() })
}

/// Calls `of` with a path as a C string, without allocating.
#[inline(never)] // The copy of the path must not lie on a small stack for longer than it takes.
fn with_path<T>(path: &Path, of: impl FnOnce(*const c_char) -> io::Result<T>) -> io::Result<T> {
    let mut copy = [0; libc::PATH_MAX as usize];
    let bytes = path.as_os_str().as_bytes();
    let too_long = || io::Error::from_raw_os_error(libc::ENAMETOOLONG);
    copy.get_mut(..bytes.len()).ok_or_else(too_long)?.copy_from_slice(bytes);
    of(CStr::from_bytes_until_nul(&copy).map_err(|_| too_long())?.as_ptr())
}

/// The status of an open file.
pub fn status_of(file: &impl AsFd) -> io::Result<libc::stat> {
    status_of_number(file.as_fd().as_raw_fd())
}

/// The status of the file that a descriptor refers to; an error if it is not open.
pub fn status_of_number(descriptor: c_int) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat(2) refuses a number that is no descriptor, and fills the structure when it returns 0.
    if unsafe { libc::syscall(libc::SYS_fstat, descriptor, status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstat(2) has filled it.
    Ok(unsafe { status.assume_init() })
}

/// The most copies that [`write_copies`] writes at once.
const COPY_LIMIT: usize = 64;

/// Writes copies of `template` from `from` to `to`, a whole number of them. On an error, some may be written.
///
/// One call for all of them takes half as long as one for each: the kernel allocates larger pieces.
pub fn write_copies(file: &File, template: &[u8], from: u64, to: u64) -> io::Result<()> {
    let template_at = libc::iovec { iov_base: template.as_ptr().cast_mut().cast(), iov_len: template.len() };
    let all = [template_at; COPY_LIMIT];
    let mut at = from;
    while at < to {
        let begun = ((at - from) % template.len() as u64) as usize;
        let copies = ((to - at) / template.len() as u64).min(COPY_LIMIT as u64);
        let written = if begun == 0 {
            // SAFETY: pwritev(2) reads `copies` elements of `all`, which has at least as many.
            unsafe { libc::pwritev(file.as_raw_fd(), all.as_ptr(), copies as i32, at.cast_signed()) }
        } else {
            -1
        };
        if written > 0 {
            at += written as u64;
        } else {
            // The rest of a copy. It also works if a filter refuses pwritev, and returns the error if the disk is full.
            let rest = template.get(begun..).unwrap_or_default();
            file.write_all_at(rest, at)?;
            at += rest.len() as u64;
        }
    }
    Ok(())
}

/// Maps `length` bytes of a file from an offset on, for reading and writing, and shared. The mapping stays until
/// munmap(2).
pub fn map(file: &File, from: u64, length: usize) -> io::Result<NonNull<c_void>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let descriptor = file.as_raw_fd();
    // SAFETY: a new mapping, at an address from the kernel.
    let mapping = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, descriptor, from.cast_signed())
    };
    NonNull::new(mapping).filter(|_| mapping != libc::MAP_FAILED).ok_or_else(io::Error::last_os_error)
}

/// The error of a file that would be larger than the process may write. Like the next one, it does not allocate.
pub fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

/// The error of a file that another program has truncated or replaced.
pub fn taken() -> io::Error {
    io::Error::from_raw_os_error(libc::ESTALE)
}

/// Makes a directory for this user alone, with its parents, unless it exists.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let make = || DirBuilder::new().mode(0o700).create(path);
    let is_directory = || status(path).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFDIR);
    let made = match (make(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(parent)?;
            make()
        }
        (made, _) => made,
    };
    // Another process may have made it meanwhile.
    if made.is_err() && is_directory() { Ok(()) } else { made }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_is_read_and_known() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"a\xffb").unwrap();
        assert_eq!(read(file.path()).unwrap(), b"a\xffb");
        assert_eq!(text(file.path()), "a\u{fffd}b");
        assert_eq!(text("/nowhere"), "");
        let known = file.as_file().metadata().unwrap();
        for status in [status(file.path()).unwrap(), status_of(&file).unwrap()] {
            assert_eq!((status.st_dev, status.st_ino, status.st_size), (known.dev(), known.ino(), 3));
        }
    }

    #[test]
    fn a_descriptor_is_none_of_the_standard_streams() {
        let made = above_streams(|| open(Path::new("/dev/null"), libc::O_RDONLY).map(OwnedFd::from)).unwrap();
        assert!(made.as_raw_fd() > libc::STDERR_FILENO);
        assert!(own(-1).is_err());
    }

    #[test]
    fn copies_fill_a_part_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let template: Vec<u8> = (0..100).collect();
        let copies = 2 * COPY_LIMIT + 1;
        write_copies(file.as_file(), &template, 7, (7 + copies * template.len()) as u64).unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), [vec![0; 7], template.repeat(copies)].concat());
        let read_only = File::open(file.path()).unwrap();
        assert!(write_copies(&read_only, &template, 0, 100).is_err());
    }

    #[test]
    fn a_directory_is_made_with_those_above_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c");
        make_directory(&path).unwrap();
        make_directory(&path).unwrap();
        for made in [&*path, path.parent().unwrap()] {
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(make_directory(&file).is_err() && make_directory(&file.join("below")).is_err());
    }
}
