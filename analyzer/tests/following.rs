//! A run that is followed while it grows: every answer is that of an analysis that begins anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops where it is surprised"
)]

#[path = "analysis/traces.rs"]
#[allow(dead_code, reason = "it is used by other tests as well")]
mod traces;

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

use traces::{SINNERS, files_with};
use urscope_analyzer::{
    Judgement, Options,
    analysis::{Analysis, Following},
    judge,
    lifetimes::LifetimeTracker,
    questions::{Holders, Stats, StatsCollector, Watch},
};
use urscope_schema::{
    proc_stat::ProcStat,
    trace::read::{Reader, Record},
};

type Observers = (LifetimeTracker<StatsCollector>, Watch);

fn observers() -> Observers {
    (LifetimeTracker::new(StatsCollector::new()), Watch::default())
}

fn answers(mut analysis: Analysis<'_>, (tracker, watch): Observers) -> (Judgement, Stats, Holders) {
    let (stats, holders) = (tracker.into_sink().stats(), watch.holders(&mut analysis));
    (analysis.judgement(), stats, holders)
}

fn anew(paths: &[PathBuf]) -> (Judgement, Stats, Holders) {
    let (mut observers, options) = (observers(), Options::default());
    let analysis = Analysis::run(paths, &options, &mut observers).unwrap();
    answers(analysis, observers)
}

fn followed(following: &Following<Observers>, paths: &[PathBuf]) -> (Judgement, Stats, Holders) {
    let options = Options::default();
    let (analysis, observers) = following.snapshot(paths, &options).unwrap();
    answers(analysis, observers)
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

/// A run whose files grow, written by processes that are there.
struct Run {
    folder: tempfile::TempDir,
    sleepers: Vec<Child>,
    /// What each file will hold, by name.
    whole: BTreeMap<String, Vec<u8>>,
    written: BTreeMap<String, usize>,
}

impl Run {
    /// Of a scenario, whose processes are played by others that only sleep.
    fn of(scenario: &str) -> Self {
        let (mut sleepers, mut starts) = (Vec::new(), Vec::new());
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

    /// Writes a file up to a byte, as a writer does that maps it: spaces stand behind.
    fn write(&mut self, name: &str, to: usize) {
        let whole = &self.whole[name];
        let (to, from) = (to.min(whole.len()), self.written[name]);
        if to <= from {
            return;
        }
        let path = self.folder.path().join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
        let there = file.metadata().unwrap().len() as usize;
        if there < to + 100 {
            file.write_all_at(&vec![b' '; to + 5000 - there], there as u64).unwrap();
        }
        file.write_all_at(&whole[from..to], from as u64).unwrap();
        self.written.insert(name.to_owned(), to);
    }

    /// Where the records of a file end that name a moment up to `time`.
    fn until(&self, name: &str, time: u64) -> usize {
        let mut reader = Reader::new(&self.whole[name][..]);
        let (mut end, mut begun) = (0, false);
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
            // A file is there with its header at the earliest.
            end = if begun { reader.offset() as usize } else { 0 };
        }
        self.whole[name].len()
    }

    /// The process of each file has ended.
    fn end(&mut self) {
        for name in self.whole.keys().cloned().collect::<Vec<_>>() {
            self.write(&name, usize::MAX);
            // An orderly exit cuts the rest.
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

/// Numbers that look like chance, and are the same in each run of the test.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn scenario(cycles: usize) -> String {
    let cycle = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nother: open h -> n\n\
                 consumer: close m\nother: close n\nproducer: put h\nproducer: put h\nproducer: free p\n";
    format!("{}{SINNERS}", cycle.repeat(cycles))
}

fn step(time: u64) -> Duration {
    Duration::from_nanos(time)
}

#[test]
fn each_answer_is_that_of_an_analysis_that_begins_anew() {
    for seed in 0..8 {
        let mut chance = Chance(seed);
        let mut run = Run::of(&scenario(6));
        let (paths, names): (_, Vec<_>) = (run.paths(), run.whole.keys().cloned().collect());
        let mut following = Following::new(observers);
        let mut time = traces::START;
        let most = names.iter().map(|name| run.whole[name].len()).max().unwrap();
        let mut compared = 0;
        while names.iter().any(|name| run.until(name, time) < run.whole[name].len()) {
            time += 1 + chance.below(3_000);
            for name in &names {
                // What was written later may be there as well, down to half a record.
                let more = if chance.below(2) == 0 { 0 } else { chance.below(most as u64 / 8) as usize };
                let complete = run.until(name, time);
                run.write(name, if complete > 0 { complete + more } else { 0 });
            }
            following.take_in_until(&paths, &Options::default(), step(time)).unwrap();
            assert_eq!(followed(&following, &paths), anew(&paths), "seed {seed}, up to {time}");
            compared += 1;
        }
        assert!(compared > 10, "it grew in {compared} steps");
        assert_eq!(following.starts(), 1, "nothing came too late");
        run.end();
        following.take_in_until(&paths, &Options::default(), step(time)).unwrap();
        assert_eq!(followed(&following, &paths), anew(&paths), "seed {seed}, at the end");
        let text = |judgement: &Judgement| serde_json::to_string(judgement).unwrap();
        let live = followed(&following, &paths).0;
        assert_eq!(text(&live), text(&judge(&paths, &Options::default()).unwrap()));
        assert!(!live.is_running() && live.findings.len() > 3);
    }
}

#[test]
fn what_comes_too_late_makes_it_begin_anew() {
    let mut chance = Chance(7);
    let mut run = Run::of(&scenario(6));
    let (paths, names): (_, Vec<_>) = (run.paths(), run.whole.keys().cloned().collect());
    let mut following = Following::new(observers);
    let mut time = traces::START;
    while names.iter().any(|name| run.written[name] < run.whole[name].len()) {
        time += 1 + chance.below(5_000);
        for name in &names {
            // The writers do not keep their promise.
            let held = if chance.below(2) == 0 { 0 } else { run.until(name, time.saturating_sub(chance.below(9_000))) };
            run.write(name, held);
        }
        following.take_in_until(&paths, &Options::default(), step(time)).unwrap();
        assert_eq!(followed(&following, &paths), anew(&paths), "up to {time}");
    }
    assert!(following.starts() > 1);
    run.kill();
    following.take_in_until(&paths, &Options::default(), step(time)).unwrap();
    assert_eq!(followed(&following, &paths), anew(&paths));
}

#[test]
fn a_file_that_is_cut_replaced_or_removed_is_read_anew() {
    let mut run = Run::of(&scenario(2));
    let (paths, options) = (run.paths(), Options::default());
    let mut following = Following::new(observers);
    run.end();
    let mut look = |starts: u64, what: &str| {
        following.take_in(&paths, &options).unwrap();
        assert_eq!(followed(&following, &paths), anew(&paths), "{what}");
        assert_eq!(following.starts(), starts, "{what}");
    };
    look(1, "whole");
    look(1, "nothing new");
    let names: Vec<_> = run.whole.keys().cloned().collect();
    let path = |name: &String| run.folder.path().join(name);
    let bytes = fs::read(path(&names[0])).unwrap();
    fs::remove_file(path(&names[0])).unwrap();
    look(2, "removed");
    fs::write(path(&names[0]), &bytes).unwrap();
    look(3, "back, and begun before what was taken in");
    let other = run.folder.path().join("other");
    fs::write(&other, &bytes[..bytes.len() / 2]).unwrap();
    fs::rename(&other, path(&names[0])).unwrap();
    look(4, "replaced");
    fs::write(path(&names[0]), &bytes[..bytes.len() / 3]).unwrap();
    look(5, "cut");
}

#[test]
fn a_process_that_has_written_no_call_yet_is_there() {
    let mut run = Run::of("p: get a -> h\np: put h");
    let (paths, name) = (run.paths(), run.whole.keys().next().unwrap().clone());
    let mut following = Following::new(observers);
    let text = String::from_utf8_lossy(&run.whole[&name]).into_owned();
    let header = text.find("urscope_door").unwrap();
    for (to, written) in [(1, 0), (header / 2, 0), (header + 20, 0), (usize::MAX, 0)] {
        run.write(&name, to);
        following.take_in_until(&paths, &Options::default(), step(written)).unwrap();
        assert_eq!(followed(&following, &paths), anew(&paths), "{to}");
    }
}
