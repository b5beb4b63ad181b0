//! The file that a descriptor of this process refers to. Preserves errno.

use super::plain_file;
use crate::raw::errno;

/// The device and the inode of the file; `None` if the descriptor is not open, or if the file is a device, which is the
/// same for all that a driver makes.
pub fn identity(descriptor: u32) -> Option<(u64, u64)> {
    let status = errno::preserve(|| plain_file::status_of_number(descriptor as libc::c_int)).ok()?;
    (status.st_mode & libc::S_IFMT != libc::S_IFCHR).then_some((status.st_dev, status.st_ino))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsRawFd as _};

    use super::*;

    #[test]
    fn a_file_is_the_same_through_every_descriptor() {
        let file = File::open("/proc/self/exe").unwrap();
        let again = file.try_clone().unwrap();
        let of = |file: &File| identity(file.as_raw_fd() as u32);
        assert!(of(&file).is_some());
        assert_eq!(of(&file), of(&again));
        assert_eq!(of(&File::open("/dev/null").unwrap()), None);
        assert_eq!(identity(u32::MAX), None);
    }
}
