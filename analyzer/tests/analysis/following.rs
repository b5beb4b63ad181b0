//! Tests of the incremental analysis of a growing run: every snapshot equals the result of a new analysis.

use std::fs::{self, OpenOptions};
use std::process::{Child, Command};
use std::{collections::BTreeMap, os::unix::fs::FileExt as _, path::PathBuf, time::Duration};

use urscope_analyzer::analysis::{Analysis, Following};
use urscope_analyzer::questions::{Holders, HoldersCollector, Stats, StatsCollector};
use urscope_analyzer::{Judgement, Options, judge, lifetimes::LifetimeTracker};
use urscope_schema::host::proc_stat::ProcStat;
use urscope_schema::trace::Record;
use urscope_schema::trace::chrome::read::Reader;

use crate::traces::{self, FAULTY_RUN, files_with};

type Observers = (LifetimeTracker<StatsCollector>, HoldersCollector);

fn observers() -> Observers {
    (LifetimeTracker::new(StatsCollector::new()), HoldersCollector::default())
}

fn answers(mut analysis: Analysis<'_>, (tracker, collector): Observers) -> (Judgement, Stats, Holders) {
    let stats = tracker.into_sink().stats().with_roles(&mut analysis);
    let holders = collector.holders(&mut analysis);
    (analysis.judgement(), stats, holders)
}

/// The answers of a new analysis.
fn new_answers(paths: &[PathBuf]) -> (Judgement, Stats, Holders) {
    let mut observers = observers();
    let options = Options::default();
    let analysis = Analysis::run(paths, &options, &mut observers).unwrap();
    answers(analysis, observers)
}

/// The answers of a snapshot.
fn snapshot(following: &Following<Observers>, paths: &[PathBuf]) -> (Judgement, Stats, Holders) {
    let options = Options::default();
    let (analysis, observers) = following.snapshot(paths, &options).unwrap();
    answers(analysis, observers)
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

/// A run whose files grow. Its processes run: they sleep.
struct Run {
    folder: tempfile::TempDir,
    sleepers: Vec<Child>,
    /// The final content of each file, by name.
    whole: BTreeMap<String, Vec<u8>>,
    written: BTreeMap<String, usize>,
}

impl Run {
    /// A run of a scenario, with a sleeping process for each of its processes.
    fn new(scenario: &str) -> Self {
        let mut sleepers = Vec::new();
        let mut starts = Vec::new();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
        for _ in 0..4 {
            let child = sleeper();
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            starts.push((child.id(), ProcStat::parse(&stat).unwrap().start));
            sleepers.push(child);
        }
        let next = std::cell::Cell::new(0);
        let files = files_with(scenario, |header, _| {
            (header.pid, header.start) = starts[next.get()];
            (header.boot_id, header.pid_namespace) = (boot_id.clone(), 0);
            next.set(next.get() + 1);
        });
        let written = files.keys().map(|name| (name.clone(), 0)).collect();
        Self { folder: tempfile::tempdir().unwrap(), sleepers, whole: files, written }
    }

    fn paths(&self) -> [PathBuf; 1] {
        [self.folder.path().to_owned()]
    }

    /// Writes a file up to byte `to`, followed by spaces, like a writer that maps it.
    fn write(&mut self, name: &str, to: usize) {
        let whole = &self.whole[name];
        let to = to.min(whole.len());
        let from = self.written[name];
        if to <= from {
            return;
        }
        let path = self.folder.path().join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
        let size = file.metadata().unwrap().len() as usize;
        if size < to + 100 {
            file.write_all_at(&vec![b' '; to + 5000 - size], size as u64).unwrap();
        }
        file.write_all_at(&whole[from..to], from as u64).unwrap();
        self.written.insert(name.to_owned(), to);
    }

    /// The end of the records of a file with times up to `time`, in bytes; 0 before its header.
    fn until(&self, name: &str, time: u64) -> usize {
        let mut reader = Reader::new(&self.whole[name][..]);
        let mut end = 0;
        let mut begun = false;
        while let Some(record) = reader.next() {
            let record = record.unwrap();
            begun |= matches!(record, Ok(Record::Header(_)));
            let later = match record {
                Ok(Record::Enter(enter)) => enter.time.0 > time,
                Ok(Record::Exit(exit)) => exit.time.0 > time,
                Ok(Record::Header(header)) => header.clock.monotonic_ns > time,
                Ok(Record::Footer(footer)) => footer.clock.monotonic_ns > time,
                _ => false,
            };
            if later {
                return end;
            }
            // A file exists only once its header is written.
            end = if begun { reader.offset() as usize } else { 0 };
        }
        self.whole[name].len()
    }

    /// Completes all files and ends all processes.
    fn end(&mut self) {
        for name in self.whole.keys().cloned().collect::<Vec<_>>() {
            self.write(&name, usize::MAX);
            // A normal exit truncates the file.
            let file = OpenOptions::new().write(true).open(self.folder.path().join(&name)).unwrap();
            file.set_len(self.whole[&name].len() as u64).unwrap();
        }
        self.kill();
    }

    fn kill(&mut self) {
        for child in &mut self.sleepers {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        for child in &mut self.sleepers {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A generator of pseudo-random numbers, which are the same in each run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn scenario(cycles: usize) -> String {
    let cycle = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nother: open h -> n\n\
                 consumer: close m\nother: close n\nproducer: put h\nproducer: put h\nproducer: free p\n";
    format!("{}{FAULTY_RUN}", cycle.repeat(cycles))
}

fn nanos(time: u64) -> Duration {
    Duration::from_nanos(time)
}

#[test]
fn each_snapshot_equals_a_new_analysis() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let mut run = Run::new(&scenario(6));
        let (paths, names): (_, Vec<_>) = (run.paths(), run.whole.keys().cloned().collect());
        let mut following = Following::new(observers);
        let mut time = traces::START;
        let longest = names.iter().map(|name| run.whole[name].len()).max().unwrap();
        let mut compared = 0;
        while names.iter().any(|name| run.until(name, time) < run.whole[name].len()) {
            time += 1 + random.below(3_000);
            for name in &names {
                // Later records may be written already, the last one in part.
                let more = if random.below(2) == 0 { 0 } else { random.below(longest as u64 / 8) as usize };
                let complete = run.until(name, time);
                run.write(name, if complete > 0 { complete + more } else { 0 });
            }
            following.take_in_until(&paths, &Options::default(), nanos(time)).unwrap();
            assert_eq!(snapshot(&following, &paths), new_answers(&paths), "seed {seed}, up to {time}");
            compared += 1;
        }
        assert!(compared > 10, "the run grew in {compared} steps");
        assert_eq!(following.starts(), 1, "no record came too late");
        run.end();
        following.take_in_until(&paths, &Options::default(), nanos(time)).unwrap();
        assert_eq!(snapshot(&following, &paths), new_answers(&paths), "seed {seed}, at the end");
        let text = |judgement: &Judgement| serde_json::to_string(judgement).unwrap();
        let live = snapshot(&following, &paths).0;
        assert_eq!(text(&live), text(&judge(&paths, &Options::default()).unwrap()));
        assert!(!live.is_running() && live.findings.len() > 3);
    }
}

#[test]
fn a_late_record_restarts_the_analysis() {
    let mut random = Random(7);
    let mut run = Run::new(&scenario(6));
    let (paths, names): (_, Vec<_>) = (run.paths(), run.whole.keys().cloned().collect());
    let mut following = Following::new(observers);
    let mut time = traces::START;
    while names.iter().any(|name| run.written[name] < run.whole[name].len()) {
        time += 1 + random.below(5_000);
        for name in &names {
            // Some records are written later than their times allow.
            let written =
                if random.below(2) == 0 { 0 } else { run.until(name, time.saturating_sub(random.below(9_000))) };
            run.write(name, written);
        }
        following.take_in_until(&paths, &Options::default(), nanos(time)).unwrap();
        assert_eq!(snapshot(&following, &paths), new_answers(&paths), "up to {time}");
    }
    assert!(following.starts() > 1);
    run.kill();
    following.take_in_until(&paths, &Options::default(), nanos(time)).unwrap();
    assert_eq!(snapshot(&following, &paths), new_answers(&paths));
}

#[test]
fn a_truncated_replaced_or_removed_file_restarts_the_analysis() {
    let mut run = Run::new(&scenario(2));
    let paths = run.paths();
    let options = Options::default();
    let mut following = Following::new(observers);
    run.end();
    let mut check = |starts: u64, what: &str| {
        following.take_in(&paths, &options).unwrap();
        assert_eq!(snapshot(&following, &paths), new_answers(&paths), "{what}");
        assert_eq!(following.starts(), starts, "{what}");
    };
    check(1, "complete");
    check(1, "nothing new");
    let names: Vec<_> = run.whole.keys().cloned().collect();
    let path = |name: &String| run.folder.path().join(name);
    let bytes = fs::read(path(&names[0])).unwrap();
    fs::remove_file(path(&names[0])).unwrap();
    check(2, "removed");
    fs::write(path(&names[0]), &bytes).unwrap();
    check(3, "restored, with events before the committed ones");
    let other = run.folder.path().join("other");
    fs::write(&other, &bytes[..bytes.len() / 2]).unwrap();
    fs::rename(&other, path(&names[0])).unwrap();
    check(4, "replaced");
    fs::write(path(&names[0]), &bytes[..bytes.len() / 3]).unwrap();
    check(5, "truncated");
}

#[test]
fn a_process_without_calls_is_in_the_snapshot() {
    let mut run = Run::new("p: get a -> h\np: put h");
    let paths = run.paths();
    let name = run.whole.keys().next().unwrap().clone();
    let mut following = Following::new(observers);
    let text = String::from_utf8_lossy(&run.whole[&name]).into_owned();
    let header = text.find("urscope_entry_point").unwrap();
    for (to, written) in [(1, 0), (header / 2, 0), (header + 20, 0), (usize::MAX, 0)] {
        run.write(&name, to);
        following.take_in_until(&paths, &Options::default(), nanos(written)).unwrap();
        assert_eq!(snapshot(&following, &paths), new_answers(&paths), "{to}");
    }
}
