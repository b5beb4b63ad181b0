//! Observes until when the traced processes are there, and writes it beside their traces.
//!
//! A process that is killed cannot record its end. The analysis needs it to decide whether the process still held a mapping when
//! its owner freed the memory.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use urscope_analyzer::analysis::is_running;
use urscope_schema::trace::{
    process_times::{FILE, ProcessTimes},
    write::writer_of,
};

/// How often the processes are observed.
pub(super) const PERIOD: Duration = Duration::from_millis(500);

/// Observes the processes that write traces into a directory.
pub(super) struct ProcessObserver {
    folder: PathBuf,
    boot_id: String,
    /// The processes that were seen running, and when last, in nanoseconds of `CLOCK_MONOTONIC`.
    alive: HashMap<(u32, u64), u64>,
    file: Option<File>,
    next: Instant,
}

impl ProcessObserver {
    pub(super) fn new(folder: PathBuf) -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        Self { folder, boot_id, alive: HashMap::new(), file: None, next: Instant::now() }
    }

    /// When to observe next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks at all processes. A directory or a file that cannot be read or written only costs precision.
    pub(super) fn observe(&mut self) {
        self.next = Instant::now() + PERIOD;
        let before = now();
        let names = fs::read_dir(&self.folder).into_iter().flatten();
        let writers = names.filter_map(|entry| writer_of(entry.ok()?.file_name().to_str()?));
        for (pid, start) in writers {
            if is_running(pid, start) {
                self.alive.insert((pid, start), before);
            }
        }
        let gone: Vec<_> = self.alive.keys().copied().filter(|(pid, start)| !is_running(*pid, *start)).collect();
        for (pid, start) in gone {
            let gone_ns = now();
            if let Some(alive_ns) = self.alive.remove(&(pid, start)) {
                self.write(&ProcessTimes { boot_id: self.boot_id.clone(), pid, start, alive_ns, gone_ns });
            }
        }
    }

    fn write(&mut self, times: &ProcessTimes) {
        let open = || OpenOptions::new().create(true).append(true).open(self.folder.join(FILE)).ok();
        let Ok(mut line) = serde_json::to_vec(times) else { return };
        line.push(b'\n');
        if self.file.is_none() {
            self.file = open();
        }
        // One write per line: runs that share a directory append to one file.
        drop(self.file.as_mut().map(|file| file.write_all(&line)));
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_ends_is_written_once_with_both_times() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
        let start = urscope_schema::proc_stat::ProcStat::parse(&stat).unwrap().start;
        fs::write(folder.path().join(format!("urscope-sleep-{}-{start}.json", sleeper.id())), "[\n").unwrap();
        fs::write(folder.path().join(format!("urscope-sleep-{}-{}.json", sleeper.id(), start + 1)), "[\n").unwrap();
        let began = now();
        let mut observer = ProcessObserver::new(folder.path().into());
        observer.observe();
        assert!(!folder.path().join(FILE).exists(), "it still runs");
        let killed = now();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        observer.observe();
        observer.observe();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        let times: ProcessTimes = serde_json::from_str(&text).unwrap();
        assert_eq!((times.pid, times.start, text.lines().count()), (sleeper.id(), start, 1));
        assert!(began <= times.alive_ns && times.alive_ns <= killed && killed <= times.gone_ns, "{times:?}");
    }
}
