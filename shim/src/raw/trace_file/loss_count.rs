//! The number of records that could not be written, also in the file itself: a process may be killed before it writes a
//! footer, or be unable to open its file again.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use urscope_schema::trace::chrome::write::{self, LOST_AT, LOST_DIGITS};

use crate::raw::files::{named_file::NamedFile, plain_file};
use crate::raw::{errno, signals::sync};

/// A number of lost records.
pub struct LossCount {
    lost: AtomicU64,
    /// Its digits in the mapped file; null without a file.
    digits: AtomicPtr<u64>,
}

const PAGE: u64 = 4096;

impl LossCount {
    /// No lost record, and no file.
    pub const fn none() -> Self {
        Self { lost: AtomicU64::new(0), digits: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts a lost record.
    pub fn add(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.write();
    }

    /// Keeps the number in a file, whose fields of a [gap](write::gap) are at an offset. Their page stays mapped.
    pub fn keep_in(&self, file: &NamedFile, fields: u64) -> io::Result<()> {
        let at = fields + LOST_AT as u64;
        let before = at % PAGE;
        let pages = plain_file::map(&file.reopen()?, at - before, before as usize + LOST_DIGITS)?;
        // A child must not write into its parent's file. SAFETY: the mapping that has just been made.
        let digits = unsafe {
            libc::madvise(pages.as_ptr(), before as usize + LOST_DIGITS, libc::MADV_DONTFORK);
            pages.byte_add(before as usize)
        };
        self.digits.store(digits.as_ptr().cast(), Ordering::Release);
        if self.get() != 0 {
            self.write();
        }
        Ok(())
    }

    /// Forgets the number and the file, in a forked child.
    pub fn reset(&self) {
        self.lost.store(0, Ordering::Relaxed);
        self.digits.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    fn write(&self) {
        let digits = self.digits.load(Ordering::Acquire);
        loop {
            let lost = self.get();
            let fields = write::gap(lost);
            let Some(text) = fields.get(LOST_AT..).and_then(|rest| rest.first_chunk()) else { return };
            if digits.is_null() || !is_there(digits) {
                return;
            }
            // SAFETY: they lie in a page that stays mapped, and the file still has it.
            unsafe { sync::store_unaligned(digits, u64::from_ne_bytes(*text)) };
            // Another thread may have stored a lower number after this one's.
            if self.get() == lost {
                return;
            }
        }
    }
}

/// Whether a mapped file still has the word at an address. If others have truncated it, a store would raise SIGBUS.
fn is_there(address: *const u64) -> bool {
    // The kernel copies a set of signals from there before it refuses what is to be done with it.
    let nothing = -1;
    let size = size_of::<u64>();
    errno::preserve(|| {
        // SAFETY: rt_sigprocmask(2) reads so many bytes, or says EFAULT where it cannot, and changes nothing.
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, nothing, address, std::ptr::null::<u64>(), size) };
        io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn the_number_in_the_file_is_that_of_all_threads() {
        static COUNT: LossCount = LossCount::none();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let (mut name, file) = NamedFile::create(&path).unwrap();
        // The digits are on two pages.
        let at = PAGE - LOST_AT as u64 - 3;
        plain_file::write_copies(&file, &vec![b' '; at as usize], 0, at).unwrap();
        plain_file::write_copies(&file, &write::gap(0), at, at + write::gap(0).len() as u64).unwrap();
        name.publish().unwrap();
        COUNT.add();
        COUNT.keep_in(&name, at).unwrap();
        let shown = || serde_json::from_slice::<serde_json::Value>(&fs::read(&path).unwrap()).unwrap()["lost"].as_u64();
        assert_eq!(shown(), Some(1));
        // Neither a path nor room is needed.
        let moved = folder.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| COUNT.add()));
            }
        });
        fs::rename(&moved, &path).unwrap();
        assert_eq!((shown(), COUNT.get()), (Some(2001), 2001));
        // A store into the mapping would end this test by SIGBUS.
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        COUNT.add();
        assert_eq!(COUNT.get(), 2002);
    }
}
