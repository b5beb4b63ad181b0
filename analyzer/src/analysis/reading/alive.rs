//! Whether the process that wrote a trace still runs.

use std::{fs, os::unix::fs::MetadataExt};

use urscope_schema::{host::proc_stat::ProcStat, trace::records::Header};

/// Whether the process that a header describes still runs. Always false for a process of another boot or pid namespace.
pub(crate) fn is_alive(header: &Header) -> bool {
    let same_boot = !header.boot_id.is_empty() && boot_id() == header.boot_id;
    let same_namespace = header.pid_namespace == 0 || header.pid_namespace == pid_namespace();
    same_boot && same_namespace && is_running(header.pid, header.start)
}

/// The kernel's boot id, as in the header of a trace; empty if it cannot be read.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The inode of the pid namespace of this process, as in the header of a trace; 0 if it cannot be read.
pub fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map(|file| file.ino()).unwrap_or_default()
}

/// Whether the process `pid` runs and started at `start`, in clock ticks since boot as in `/proc/PID/stat`.
pub fn is_running(pid: u32, start: u64) -> bool {
    // The name of a process need not be UTF-8.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    is_running_since(&String::from_utf8_lossy(&stat), start)
}

fn is_running_since(stat: &str, start: u64) -> bool {
    ProcStat::parse(stat).is_some_and(|stat| !stat.has_ended() && stat.start == start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_or_a_reused_pid_is_not_running() {
        let stat = |state| format!("7 (a) b) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9");
        assert!(is_running_since(&stat('S'), 12345));
        assert!(!is_running_since(&stat('Z'), 12345));
        assert!(!is_running_since(&stat('S'), 12346));
        assert!(!is_running_since("", 0));
    }

    #[test]
    fn this_process_is_alive() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let start = ProcStat::parse(&stat).unwrap().start;
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
        let me = Header { pid: std::process::id(), start, boot_id, ..Header::default() };
        assert!(is_alive(&me));
        assert!(!is_alive(&Header { boot_id: "another".into(), ..me }));
    }
}
