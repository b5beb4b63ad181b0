//! Watches the traces of a growing run: whether they have changed, and when to analyze them next.
//!
//! A command that shows a growing run (`urscope top`, `urscope view`) polls a [`Follower`] and updates its analysis
//! when [`Follower::poll`] returns true. A follower must never read a whole trace. It must limit the analysis to a
//! fifth of the time: an update that takes longer, such as one that reads everything again, is followed by a longer
//! pause.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{collections::BTreeMap, os::unix::fs::MetadataExt as _, slice};

use urscope_schema::trace::writer_of;

use crate::analysis::{ChunkExtent, end_of_text, is_binary, is_blank, is_running, traces};
use crate::files;

/// The minimum time between the starts of two analyses.
pub const PACE: Duration = Duration::from_secs(1);

/// The minimum time between two polls while nothing changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The minimum ratio of a pause to the work before it: at most a fifth of the time is used.
const PAUSE_RATIO: u32 = 4;

/// The number of bytes after the end of a trace that are checked for growth.
const PEEK: usize = 64;

/// Watches files, and directories for trace files in them. Files and directories may appear later.
#[derive(Debug)]
pub struct Follower {
    paths: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Shape>,
    next: Option<Instant>,
}

/// The state of a trace file, by which changes are detected.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    /// Device and inode.
    identity: (u64, u64),
    size: u64,
    /// The modification time: seconds and nanoseconds. Stores into a mapping of the file do not change it at once.
    written: (i64, i64),
    /// The end of the text, in bytes: only spaces follow.
    used: u64,
    /// The extent of a binary trace.
    chunks: ChunkExtent,
    /// Whether its process still runs. A process that is killed does not change its file.
    running: bool,
}

impl Follower {
    /// Follows `paths`, which need not exist yet.
    pub fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_vec(), known: BTreeMap::new(), next: None }
    }

    /// Whether to analyze the traces now: they have changed since the last poll that returned true, and the pause is
    /// over.
    ///
    /// Call [`Self::analyzed`] after the analysis. The next poll reports what is written in the meantime.
    pub fn poll(&mut self, now: Instant) -> bool {
        if now < self.next_poll(now) {
            return false;
        }
        let began = Instant::now();
        let shapes = self.shapes();
        let changed = shapes != self.known;
        self.known = shapes;
        self.next = Some(now + POLL_INTERVAL.max(began.elapsed() * PAUSE_RATIO));
        changed
    }

    /// Records that an analysis took from `began` until `now`, which determines the next poll.
    pub fn analyzed(&mut self, began: Instant, now: Instant) {
        self.next = Some((began + PACE).max(now + now.saturating_duration_since(began) * PAUSE_RATIO));
    }

    /// When to poll next; `now` if there was no poll yet.
    pub fn next_poll(&self, now: Instant) -> Instant {
        self.next.unwrap_or(now)
    }

    /// The number of traces at the last poll that checked the files.
    pub fn traces(&self) -> usize {
        self.known.len()
    }

    fn shapes(&self) -> BTreeMap<PathBuf, Shape> {
        // A path that cannot be read counts as missing. The analysis reports the error.
        let files = self.paths.iter().flat_map(|path| traces(slice::from_ref(path)).unwrap_or_default());
        files.filter_map(|file| Some((self.shape(&file)?, file))).map(|(shape, file)| (file, shape)).collect()
    }

    fn shape(&self, path: &Path) -> Option<Shape> {
        let file = files::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let identity = (metadata.dev(), metadata.ino());
        let size = metadata.len();
        let written = (metadata.mtime(), metadata.mtime_nsec());
        let before = self.known.get(path).filter(|shape| shape.identity == identity && shape.used <= size);
        let from = before.map_or(0, |shape| shape.used);
        let as_before = before.is_some_and(|shape| shape.size == size && shape.written == written);
        let mut used = from;
        let mut chunks = ChunkExtent::default();
        if is_binary(&file) {
            chunks = before.map(|shape| shape.chunks.clone()).unwrap_or_default().now(&file, size);
        } else if !as_before || !is_blank::<PEEK>(&file, from) {
            used = end_of_text(&file, from, size);
        }
        Some(Shape {
            identity,
            size,
            written,
            used,
            chunks,
            running: writer(path).is_some_and(|(pid, start)| is_running(pid, start)),
        })
    }
}

/// The number and start of the process that wrote a file, from its name.
fn writer(path: &Path) -> Option<(u32, u64)> {
    writer_of(path.file_name()?.to_str()?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes, OpenOptions};
    use std::{process::Command, time::SystemTime};

    use std::os::unix::fs::FileExt as _;

    use super::*;

    const BLOCK: usize = 4096;

    const LONG: Duration = Duration::from_hours(1);

    /// A follower without pauses.
    struct Eager(Follower, Instant);

    impl Eager {
        fn new(path: &Path) -> Self {
            Self(Follower::new(&[path.to_owned()]), Instant::now())
        }

        fn changed(&mut self) -> bool {
            self.1 += LONG;
            self.0.poll(self.1)
        }
    }

    #[test]
    fn stores_into_a_mapping_are_detected_without_a_change_of_size_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urscope-a-1-1.json");
        for used in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7, (1 << 20) - 9] {
            fs::write(&path, ["x".repeat(used), " ".repeat((1 << 20) - used)].concat()).unwrap();
            let mut follower = Eager::new(folder.path());
            assert!(follower.changed(), "the file is new");
            assert!(!follower.changed(), "nothing has changed at {used}");
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            let then = file.metadata().unwrap().modified().unwrap();
            file.write_all_at(b"\n,{", used as u64).unwrap();
            file.set_times(FileTimes::new().set_modified(then)).unwrap();
            assert!(follower.changed(), "3 bytes were added at {used}");
            assert_eq!(follower.0.known.values().next().unwrap().used, used as u64 + 3);
            assert!(!follower.changed());
        }
    }

    #[test]
    fn files_and_directories_that_appear_disappear_or_are_replaced_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("not/yet");
        let mut follower = Eager::new(&traces);
        assert!(!follower.changed());
        fs::create_dir_all(&traces).unwrap();
        assert!(!follower.changed());
        fs::write(traces.join("notes.json"), "[").unwrap();
        assert!(!follower.changed(), "only traces count");

        let path = traces.join("urscope-a-1-1.json");
        fs::write(&path, "[\n").unwrap();
        assert!(follower.changed());
        assert_eq!(follower.0.traces(), 1);
        let now = SystemTime::now();
        File::open(&path).unwrap().set_times(FileTimes::new().set_modified(now)).unwrap();
        assert!(follower.changed(), "the file was written");
        fs::write(folder.path().join("other"), "[\n").unwrap();
        File::open(folder.path().join("other")).unwrap().set_times(FileTimes::new().set_modified(now)).unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(follower.changed(), "the file was replaced");
        fs::remove_file(&path).unwrap();
        assert!(follower.changed());
        assert_eq!(follower.0.traces(), 0);
    }

    #[test]
    fn a_killed_process_is_a_change_although_its_file_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
        let start = urscope_schema::host::proc_stat::ProcStat::parse(&stat).unwrap().start;
        let name = format!("urscope-sleep-{}-{start}-2.json", sleeper.id());
        fs::write(folder.path().join(name), "[\n").unwrap();
        let mut follower = Eager::new(folder.path());
        assert!(follower.changed());
        assert!(!follower.changed());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(follower.changed());
        assert!(!follower.changed());
    }

    #[test]
    fn analyses_take_at_most_a_fifth_of_the_time_and_begin_a_second_apart() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("urscope-a-1-1.json"), "[\n").unwrap();
        for (took, pause) in [(1, 1000), (200, 1000), (300, 1500), (60_000, 300_000)] {
            let [took, pause] = [took, pause].map(Duration::from_millis);
            let began = Instant::now();
            let mut follower = Follower::new(&[folder.path().to_owned()]);
            assert!(follower.poll(began));
            follower.analyzed(began, began + took);
            fs::write(folder.path().join("urscope-a-1-1.json"), format!("[\n{took:?}")).unwrap();
            assert_eq!(follower.next_poll(began), began + pause);
            assert!(!follower.poll(began + pause.saturating_sub(Duration::from_millis(1))));
            assert!(follower.poll(began + pause));
        }
    }
}
