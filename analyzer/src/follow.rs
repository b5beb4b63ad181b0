//! The traces of a run that goes on: whether there is more of them, and when it is worth hearing them again.
//!
//! Whoever shows a run while it grows (`urscope top`, `urscope view`) polls a [`Follower`] and holds a hearing when it says
//! so. It must never read a trace as a whole, and never make the judge busy for more than a share of the time: a hearing
//! reads everything, so the pause behind it grows with the run.

use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    slice,
    time::{Duration, Instant},
};

use crate::analysis::{end_of_text, is_blank, is_running, traces};

/// Hearings begin at least this far apart.
pub const PACE: Duration = Duration::from_secs(1);

/// While nothing changes, the files are looked at so often.
const GLANCE: Duration = Duration::from_millis(250);

/// A pause is at least so many times as long as what was done before it: a fifth of the time is used.
const REST: u32 = 4;

/// How many bytes behind the end of a trace show whether it has grown.
const PEEK: usize = 64;

/// Watches files, or directories for `urscope-*.json` files in them. What is not there yet may come.
#[derive(Debug)]
pub struct Follower {
    paths: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Shape>,
    next: Option<Instant>,
}

/// What a trace looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    /// Device and inode.
    identity: (u64, u64),
    size: u64,
    /// When it was last written by a call of the system; what is stored into its mapping does not show here at once.
    written: (i64, i64),
    /// Where the spaces begin that it is filled up with.
    used: u64,
    /// Whether its process is there: one that is killed leaves its file as it was.
    running: bool,
}

impl Follower {
    /// Follows `paths`, of which none need exist.
    pub fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_vec(), known: BTreeMap::new(), next: None }
    }

    /// Whether the traces are to be heard now: they are not as they were when this was last true, and it is time.
    ///
    /// After the hearing, say [`Self::heard`]. What is written while it goes on is told by the next poll.
    pub fn poll(&mut self, now: Instant) -> bool {
        if now < self.next_look(now) {
            return false;
        }
        let began = Instant::now();
        let shapes = self.shapes();
        let changed = shapes != self.known;
        self.known = shapes;
        self.next = Some(now + GLANCE.max(began.elapsed() * REST));
        changed
    }

    /// A hearing has taken from `began` until `now`.
    pub fn heard(&mut self, began: Instant, now: Instant) {
        self.next = Some((began + PACE).max(now + now.saturating_duration_since(began) * REST));
    }

    /// When to poll next, as seen from `now`.
    pub fn next_look(&self, now: Instant) -> Instant {
        self.next.unwrap_or(now)
    }

    /// How many traces there were at the last look.
    pub fn traces(&self) -> usize {
        self.known.len()
    }

    fn shapes(&self) -> BTreeMap<PathBuf, Shape> {
        // What cannot be read is not there yet; the judge says what is wrong with it.
        let files = self.paths.iter().flat_map(|path| traces(slice::from_ref(path)).unwrap_or_default());
        files.filter_map(|file| Some((self.shape(&file)?, file))).map(|(shape, file)| (file, shape)).collect()
    }

    fn shape(&self, path: &Path) -> Option<Shape> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok()?;
        let (identity, size) = ((metadata.dev(), metadata.ino()), metadata.len());
        let written = (metadata.mtime(), metadata.mtime_nsec());
        let before = self.known.get(path).filter(|shape| shape.identity == identity && shape.used <= size);
        let from = before.map_or(0, |shape| shape.used);
        let as_before = before.is_some_and(|shape| shape.size == size && shape.written == written);
        let used = if as_before && is_blank::<PEEK>(&file, from) { from } else { end_of_text(&file, from, size) };
        Some(Shape {
            identity,
            size,
            written,
            used,
            running: process(path).is_some_and(|(pid, start)| is_running(pid, start)),
        })
    }
}

/// Number and start of the process that wrote a file, as its name says: `urscope-<executable>-<pid>-<start>[-<n>].json`.
fn process(path: &Path) -> Option<(u32, u64)> {
    // The name of the executable has no hyphen there.
    let mut parts = path.file_stem()?.to_str()?.strip_prefix("urscope-")?.split('-').skip(1);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, FileTimes, OpenOptions},
        process::Command,
        time::SystemTime,
    };

    use std::os::unix::fs::FileExt as _;

    use super::*;

    const BLOCK: usize = 4096;

    const LONG: Duration = Duration::from_hours(1);

    /// A follower that has no pause.
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
    fn what_is_stored_into_a_mapping_is_seen_without_a_change_of_size_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urscope-a-1-1.json");
        for used in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7, (1 << 20) - 9] {
            fs::write(&path, ["x".repeat(used), " ".repeat((1 << 20) - used)].concat()).unwrap();
            let mut follower = Eager::new(folder.path());
            assert!(follower.changed(), "it is new");
            assert!(!follower.changed(), "nothing has happened to {used}");
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            let then = file.metadata().unwrap().modified().unwrap();
            file.write_all_at(b"\n,{", used as u64).unwrap();
            file.set_times(FileTimes::new().set_modified(then)).unwrap();
            assert!(follower.changed(), "{used} and 3 are used");
            assert_eq!(follower.0.known.values().next().unwrap().used, used as u64 + 3);
            assert!(!follower.changed());
        }
    }

    #[test]
    fn files_and_directories_may_come_and_go_and_be_replaced() {
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
        assert!(follower.changed(), "it was written");
        fs::write(folder.path().join("other"), "[\n").unwrap();
        File::open(folder.path().join("other")).unwrap().set_times(FileTimes::new().set_modified(now)).unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(follower.changed(), "another one is in its place");
        fs::remove_file(&path).unwrap();
        assert!(follower.changed());
        assert_eq!(follower.0.traces(), 0);
    }

    #[test]
    fn a_process_that_is_killed_changes_the_run_and_not_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
        let start = urscope_schema::proc_stat::ProcStat::parse(&stat).unwrap().start;
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
    fn hearings_take_a_fifth_of_the_time_and_begin_a_second_apart() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("urscope-a-1-1.json"), "[\n").unwrap();
        for (took, pause) in [(1, 1000), (200, 1000), (300, 1500), (60_000, 300_000)] {
            let [took, pause] = [took, pause].map(Duration::from_millis);
            let began = Instant::now();
            let mut follower = Follower::new(&[folder.path().to_owned()]);
            assert!(follower.poll(began));
            follower.heard(began, began + took);
            fs::write(folder.path().join("urscope-a-1-1.json"), format!("[\n{took:?}")).unwrap();
            assert_eq!(follower.next_look(began), began + pause);
            assert!(!follower.poll(began + pause.saturating_sub(Duration::from_millis(1))));
            assert!(follower.poll(began + pause));
        }
    }
}
