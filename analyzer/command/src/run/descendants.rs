//! Finds the descendants of a process in /proc.

use std::{collections::HashMap, fs, path::Path};

use urscope_schema::host::proc_stat::ProcStat;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descendant {
    pub(crate) pid: u32,
    pub(crate) name: String,
}

/// All descendants of the process `of` that have not ended, ordered by number.
pub(crate) fn descendants(of: u32) -> Vec<Descendant> {
    let numbers =
        fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: HashMap<u32, Stat> = numbers.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let below = |pid: u32| descends(pid, of, |pid| all.get(&pid).map(|stat| stat.parent));
    let mut found: Vec<_> = all
        .iter()
        .filter(|(pid, stat)| !stat.has_ended && below(**pid))
        .map(|(pid, stat)| Descendant { pid: *pid, name: stat.name.clone() })
        .collect();
    found.sort_by_key(|descendant| descendant.pid);
    found
}

/// The numbers of all descendants of the process `of`. Where the kernel lists the children of each thread, only their
/// files are read.
pub(super) fn numbers_below(of: u32) -> Vec<u32> {
    if !Path::new("/proc/thread-self/children").exists() {
        return descendants(of).into_iter().map(|descendant| descendant.pid).collect();
    }
    let mut found = children(of);
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        let below = children(pid).into_iter().filter(|pid| !found.contains(pid)).collect::<Vec<_>>();
        found.extend(below);
        at += 1;
    }
    found
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Whether the process `pid` descends from the process `of`.
pub(crate) fn is_descendant(pid: u32, of: u32) -> bool {
    descends(pid, of, |pid| stat(pid).map(|stat| stat.parent))
}

fn descends(mut pid: u32, of: u32, parent: impl Fn(u32) -> Option<u32>) -> bool {
    // /proc may change while it is read, so a cycle is possible.
    for _ in 0..1024 {
        match parent(pid) {
            Some(parent) if parent == of => return true,
            Some(0) | None => return false,
            Some(parent) => pid = parent,
        }
    }
    false
}

/// The number by which a process knows itself, in the innermost of its pid namespaces.
pub(super) fn innermost(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

/// What `/proc/PID/stat` says of a process.
pub(super) struct Stat {
    name: String,
    has_ended: bool,
    pub(super) parent: u32,
    /// When it started, in clock ticks since boot.
    pub(super) start: u64,
    /// Where its stack begins.
    pub(super) stack: u64,
}

/// Reads it; `None` if there is no such process.
pub(super) fn stat(pid: u32) -> Option<Stat> {
    // The name of a process need not be UTF-8.
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let stat = ProcStat::parse(&text)?;
    Some(Stat {
        name: stat.name.to_owned(),
        has_ended: stat.has_ended(),
        parent: stat.parent,
        start: stat.start,
        stack: stat.stack.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_found() {
        let mut shell = std::process::Command::new("sh").args(["-c", "sleep 600 & wait"]).spawn().unwrap();
        let own = std::process::id();
        let sleeper = loop {
            let below = numbers_below(shell.id());
            if let [sleeper] = below[..] {
                // The sleeper is there by now.
                let all = numbers_below(own);
                assert!(all.contains(&shell.id()) && all.contains(&sleeper), "{all:?}");
                break sleeper;
            }
        };
        let numbers: Vec<u32> = descendants(shell.id()).iter().map(|descendant| descendant.pid).collect();
        assert_eq!(numbers, [sleeper]);
        for pid in [sleeper, shell.id()] {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid as i32).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        }
        shell.wait().unwrap();
    }

    #[test]
    fn descent_covers_several_generations() {
        let parents = HashMap::from([(4, 3), (3, 2), (2, 1), (1, 0), (9, 9)]);
        let parent = |pid| parents.get(&pid).copied();
        assert!(descends(4, 2, parent));
        assert!(!descends(2, 2, parent), "no process descends from itself");
        assert!(!descends(2, 4, parent));
        assert!(!descends(9, 2, parent), "a cycle ends");
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        assert!(is_descendant(std::process::id(), std::os::unix::process::parent_id()));
        assert!(descendants(std::os::unix::process::parent_id()).iter().any(|one| one.pid == std::process::id()));
    }
}
