//! Checks the kernel, its limits, and the current directory.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use rustix::process::{Resource, getrlimit};

use super::{line::Line, probe};
use crate::run;

/// The first kernel with pidfd_getfd.
const KERNEL: (u32, u32) = (5, 6);

/// A limit below this is soon reached, because each held handle takes a descriptor.
const FEW: u64 = 1024;

/// The inode of the first pid namespace, fixed in the kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

pub(crate) fn lines() -> Vec<Line> {
    let limits = getrlimit(Resource::Nofile);
    vec![
        kernel(&rustix::system::uname().release().to_string_lossy()),
        files(limits.current, limits.maximum),
        memory(&probe::offered().map(drop)),
        namespace(fs::metadata("/proc/self/ns/pid").ok().map(|metadata| metadata.ino())),
        directory(&run::writable(Path::new("."))),
    ]
}

fn kernel(release: &str) -> Line {
    let found = format!("Linux {release}");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < KERNEL => Line::problem(
            "kernel",
            found,
            "pidfd_getfd, with which memory handles are passed, needs Linux 5.6 or newer",
        ),
        _ => Line::ok("kernel", found),
    }
}

/// The line about the soft and the hard limit of open files; `None` is unlimited.
fn files(soft: Option<u64>, hard: Option<u64>) -> Line {
    let word = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    let found = format!("open files: soft limit {}, hard limit {}", word(soft), word(hard));
    let raise = format!("each held handle takes a descriptor; ulimit -n {} raises the limit", word(hard));
    match soft {
        Some(soft) if soft < FEW => Line::warning("files", found, raise),
        Some(soft) if hard.is_none_or(|hard| soft < hard) && soft <= FEW => Line::ok("files", found).with(raise),
        _ => Line::ok("files", found),
    }
}

/// The line about a file in memory, as the software device makes it.
fn memory(tried: &io::Result<()>) -> Line {
    match tried {
        Ok(()) => Line::ok("memory", "memfd_create works"),
        Err(error) => Line::warning(
            "memory",
            format!("memfd_create was refused: {error}"),
            "the software device needs it: use another seccomp profile",
        ),
    }
}

/// The line about the pid namespace of this process, given its inode.
fn namespace(inode: Option<u64>) -> Line {
    match inode {
        Some(FIRST_PID_NAMESPACE) => Line::ok("namespace", "all programs share one pid namespace"),
        Some(_) => Line::ok("namespace", "this is a container with its own pid namespace")
            .with("handle data contains the producer's process number: run producer and consumer in one container"),
        None => Line::warning("namespace", "/proc/self/ns/pid cannot be read", "mount /proc, because urscope needs it"),
    }
}

fn directory(tried: &io::Result<()>) -> Line {
    match tried {
        Ok(()) => Line::ok("directory", "traces can be written below the current directory"),
        Err(error) => Line::warning(
            "directory",
            format!("traces cannot be written below the current directory: {error}"),
            "name a directory for them: urscope run --dir DIR",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::line::State;

    #[test]
    fn old_kernels_are_recognized_by_their_release() {
        for (release, state) in [
            ("5.4.0-150-generic", State::Problem),
            ("4.18.0-553.el8.x86_64", State::Problem),
            ("5.6.0", State::Ok),
            ("5.15.0-1", State::Ok),
            ("6.1.0-18-amd64", State::Ok),
            ("unknown", State::Ok),
        ] {
            assert_eq!(kernel(release).state, state, "{release}");
        }
    }

    #[test]
    fn a_low_limit_of_open_files_is_a_warning() {
        assert_eq!(files(Some(256), Some(4096)).state, State::Warning);
        let usual = files(Some(1024), Some(524_288));
        assert_eq!(usual.state, State::Ok);
        assert!(usual.advice.unwrap().contains("ulimit -n 524288"));
        assert_eq!(files(None, None), Line::ok("files", "open files: soft limit no limit, hard limit no limit"));
    }

    #[test]
    fn a_container_is_reported() {
        assert_eq!(namespace(Some(FIRST_PID_NAMESPACE)).advice, None);
        assert!(namespace(Some(4_026_532_000)).found.contains("container"));
    }

    #[test]
    fn this_machine_can_be_queried() {
        assert_eq!(lines().len(), 5);
    }
}
