//! The descriptors that calls have returned to the program, and which of them it still has.
//!
//! A number may be closed and be that of another file by then. A regular file, as the software device's memory is, is
//! known by its inode. A driver's descriptors are all of one device file: they are added to an epoll(7) instance, which
//! knows an open file under a number as long as both belong together, and does not keep it open. What is not certain
//! counts as closed.
//!
//! Without locks and allocations. Preserves errno.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use urscope_schema::trace::chrome::write::MOST_KEPT;

use super::plain_file;
use crate::raw::errno;

/// The numbers below this one are looked at.
const LIMIT: usize = 4096;

/// What is known of a number: nothing, or that it was returned, ...
const NOTHING: u32 = 0;
/// ... of the regular file with this inode, ...
const OF_FILE: u32 = 1;
/// ... of an open file that [`WATCH`] has.
const WATCHED: u32 = 2;

/// A number, with what is known of it.
struct Returned {
    how: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
}

static RETURNED: [Returned; LIMIT] =
    [const { Returned { how: AtomicU32::new(NOTHING), device: AtomicU64::new(0), inode: AtomicU64::new(0) } }; LIMIT];

/// All numbers that were returned are below this one.
static END: AtomicUsize = AtomicUsize::new(0);

/// The epoll instance; 0 for none.
static WATCH: AtomicI32 = AtomicI32::new(0);

/// Descriptors that are still open, in rising order; at most [`MOST_KEPT`].
pub struct Kept {
    numbers: [u32; MOST_KEPT],
    count: usize,
}

impl Kept {
    /// Their numbers.
    pub fn numbers(&self) -> &[u32] {
        self.numbers.get(..self.count).unwrap_or_default()
    }
}

/// A call is about to return a descriptor. Who had the number before is closed.
#[cold]
pub fn note(descriptor: u32) {
    let Some(returned) = RETURNED.get(descriptor as usize) else { return };
    END.fetch_max(descriptor as usize + 1, Ordering::Relaxed);
    returned.how.store(NOTHING, Ordering::Relaxed);
    let known = errno::preserve(|| match file(descriptor as c_int) {
        Found::Regular(device, inode) => {
            returned.device.store(device, Ordering::Relaxed);
            returned.inode.store(inode, Ordering::Relaxed);
            OF_FILE
        }
        Found::Other if watch(descriptor as c_int) => WATCHED,
        Found::Other | Found::Nothing => NOTHING,
    });
    returned.how.store(known, Ordering::Release);
}

/// Those that are certainly still open, as the files that they were.
pub fn still_open() -> Kept {
    let mut kept = Kept { numbers: [0; MOST_KEPT], count: 0 };
    let returned = RETURNED.iter().enumerate().take(END.load(Ordering::Relaxed));
    errno::preserve(|| {
        for (number, returned) in returned {
            let is_open = match returned.how.load(Ordering::Acquire) {
                OF_FILE => {
                    let [device, inode] = [&returned.device, &returned.inode].map(|word| word.load(Ordering::Relaxed));
                    file(number as c_int) == Found::Regular(device, inode)
                }
                WATCHED => is_watched(number as c_int),
                _ => false,
            };
            if let (true, Some(place)) = (is_open, kept.numbers.get_mut(kept.count)) {
                *place = number as u32;
                kept.count += 1;
            }
        }
    });
    kept
}

/// Forgets in a forked child what its parent has, and closes the copy of its epoll instance.
pub fn after_fork_in_child() {
    for returned in RETURNED.iter().take(END.swap(0, Ordering::Relaxed)) {
        returned.how.store(NOTHING, Ordering::Relaxed);
    }
    let watch = WATCH.swap(0, Ordering::Relaxed);
    // The program may have closed it, and have the number for something else.
    if watch != 0 && errno::preserve(|| is_epoll(watch)) {
        errno::preserve(|| close(watch));
    }
}

/// What is under a number.
#[derive(PartialEq, Eq)]
enum Found {
    /// It is not open.
    Nothing,
    /// A regular file, with its device and inode.
    Regular(u64, u64),
    /// Another file.
    Other,
}

fn file(number: c_int) -> Found {
    match plain_file::status_of_number(number) {
        Ok(status) if status.st_mode & libc::S_IFMT == libc::S_IFREG => Found::Regular(status.st_dev, status.st_ino),
        Ok(_) => Found::Other,
        Err(_) => Found::Nothing,
    }
}

/// Adds the file of a number to the epoll instance. False if it cannot be.
fn watch(number: c_int) -> bool {
    let is_there = |added: Result<(), c_int>| matches!(added, Ok(()) | Err(libc::EEXIST));
    match WATCH.load(Ordering::Relaxed) {
        0 => {}
        watch => match control(watch, libc::EPOLL_CTL_ADD, number) {
            // The program has closed it.
            Err(libc::EBADF) => WATCH.store(0, Ordering::Relaxed),
            added => return is_there(added),
        },
    }
    let Some(new) = new_watch() else { return false };
    match WATCH.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => is_there(control(new, libc::EPOLL_CTL_ADD, number)),
        Err(of_other_thread) => {
            close(new);
            is_there(control(of_other_thread, libc::EPOLL_CTL_ADD, number))
        }
    }
}

/// Whether the open file that is under this number now is one that was added under it.
fn is_watched(number: c_int) -> bool {
    let watch = WATCH.load(Ordering::Relaxed);
    if watch == 0 {
        return false;
    }
    let added = control(watch, libc::EPOLL_CTL_ADD, number);
    if added.is_ok() {
        let _ = control(watch, libc::EPOLL_CTL_DEL, number);
    }
    added == Err(libc::EEXIST)
}

/// epoll_ctl(2), or its error.
fn control(watch: c_int, operation: c_int, number: c_int) -> Result<(), c_int> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: epoll_ctl(2) reads the structure, and refuses numbers of other things.
    let answer = unsafe { libc::syscall(libc::SYS_epoll_ctl, watch, operation, number, &raw mut event) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or_default()) }
}

/// A new epoll instance, with a number that the program does not get so soon: three quarters of what it may have, or
/// [`LIMIT`].
fn new_watch() -> Option<c_int> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) fills the structure that it is given. It fails for other resources only.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let lowest = (limit.rlim_cur / 4 * 3).min(LIMIT as u64) as c_int;
    // SAFETY: epoll_create1(2) takes a flag.
    let made = unsafe { libc::syscall(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) } as c_int;
    if made < 0 {
        return None;
    }
    // SAFETY: fcntl(2) with F_DUPFD_CLOEXEC takes plain numbers.
    let raised = unsafe { libc::syscall(libc::SYS_fcntl, made, libc::F_DUPFD_CLOEXEC, lowest) } as c_int;
    close(made);
    (raised > 0).then_some(raised)
}

/// Whether a number is that of an epoll instance.
fn is_epoll(number: c_int) -> bool {
    const LINK: &[u8] = b"anon_inode:[eventpoll]";
    let Ok(path) = std::ffi::CString::new(format!("/proc/self/fd/{number}")) else { return false };
    let mut link = [0_u8; LINK.len() + 1];
    // SAFETY: readlink(2) reads a C string, and writes at most as many bytes as there are.
    let length = unsafe { libc::readlink(path.as_ptr(), link.as_mut_ptr().cast(), link.len()) };
    usize::try_from(length).ok().and_then(|length| link.get(..length)) == Some(LINK)
}

fn close(number: c_int) {
    // SAFETY: it is a number of ours: close(2) takes it from nobody else.
    unsafe { libc::syscall(libc::SYS_close, number) };
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Other tests do not get so large numbers.
    const FREE: u32 = 600;

    /// The table is one for the process.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        after_fork_in_child();
        alone
    }

    /// What epoll takes, and what it does not.
    const KINDS: [fn() -> OwnedFd; 2] = [event, || tempfile::tempfile().unwrap().into()];

    fn event() -> OwnedFd {
        // SAFETY: the number is new.
        unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) }
    }

    /// A file of its own under a number.
    fn put(make: fn() -> OwnedFd, number: u32) -> OwnedFd {
        // SAFETY: dup2(2) takes plain numbers; nobody else has this one.
        unsafe { OwnedFd::from_raw_fd(libc::dup2(make().as_raw_fd(), number as c_int)) }
    }

    #[test]
    fn what_is_open_as_the_same_file_is_kept() {
        let _alone = alone();
        for make in KINDS {
            let made = put(make, FREE);
            note(FREE);
            assert_eq!([still_open().numbers(), still_open().numbers()], [[FREE]; 2]);
            let elsewhere = made.try_clone().unwrap();
            drop(made);
            assert!(still_open().numbers().is_empty(), "another process may have it");
            let other = put(make, FREE);
            assert!([still_open(), still_open()].iter().all(|kept| kept.numbers().is_empty()), "that is another file");
            note(FREE);
            assert_eq!(still_open().numbers(), [FREE]);
            drop((other, elsewhere));
        }
    }

    #[test]
    fn what_comes_under_the_same_number_replaces_what_was_closed() {
        let _alone = alone();
        for make in KINDS {
            for _ in 0..3 {
                let _made = put(make, FREE);
                note(FREE);
            }
            assert!(still_open().numbers().is_empty());
        }
    }

    #[test]
    fn all_are_listed_in_order() {
        let _alone = alone();
        let file = tempfile::tempfile().unwrap();
        let numbers = FREE..FREE + 100;
        // SAFETY: as above.
        let copy = |number: u32| unsafe { OwnedFd::from_raw_fd(libc::dup2(file.as_raw_fd(), number as c_int)) };
        let copies: Vec<_> = numbers.clone().map(copy).collect();
        numbers.clone().for_each(note);
        assert_eq!(still_open().numbers(), numbers.collect::<Vec<_>>());
        drop(copies);
    }

    #[test]
    fn a_child_has_nothing_and_no_epoll_instance() {
        let _alone = alone();
        let _made = put(event, FREE);
        note(FREE);
        let watch = WATCH.load(Ordering::Relaxed);
        assert!(watch as u32 > FREE && is_epoll(watch), "{watch}");
        after_fork_in_child();
        assert!(still_open().numbers().is_empty() && !is_epoll(watch));
    }

    #[test]
    fn an_epoll_instance_that_the_program_closed_is_made_again() {
        let _alone = alone();
        let _made = [put(event, FREE), put(event, FREE + 1)];
        note(FREE);
        close(WATCH.load(Ordering::Relaxed));
        assert!(still_open().numbers().is_empty());
        note(FREE + 1);
        assert_eq!(still_open().numbers(), [FREE + 1], "of the first one nothing is certain any more");
    }

    #[test]
    fn errno_stays_and_large_numbers_are_ignored() {
        let _alone = alone();
        errno::set_unsupported();
        for number in [FREE, LIMIT as u32, u32::MAX] {
            note(number);
        }
        assert!(still_open().numbers().is_empty());
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
    }
}
