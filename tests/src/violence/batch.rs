//! Ends some processes in one run, and examines what they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use serde_json::Value;

use super::{counted::Counted, ledger, stage::Stage};
use crate::{Outcome, Trace, perfetto, trace};

/// What must be loaded by Perfetto: all calls, and how many of them have no end.
const SLICES: &str = "select count(*) as calls, coalesce(sum(dur = -1), 0) as open from slice where category = 'api'";

/// Some violent ends, of consecutive seeds.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The first seed.
    pub seed: u64,
    /// The number of ends. One run has at most a hundred.
    pub count: u64,
    /// Where.
    pub stage: Stage,
    /// One way to end for all, instead of the one that each seed chooses.
    pub way: Option<String>,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// What went wrong, each with the command that repeats it.
    pub failures: Vec<String>,
    /// The number of ends.
    pub ends: u64,
    /// The numbers of trace files and of the calls in them that returned.
    pub files: u64,
    /// See `files`.
    pub calls: u64,
    /// Records that limits kept out of traces, which report them.
    pub stated: u64,
    /// Records that limits kept out of traces whose processes were killed before they could report them.
    pub unstated: u64,
    /// How often each way ended a process.
    pub ways: BTreeMap<String, u64>,
}

impl Outcomes {
    /// Adds those of other ends.
    pub fn add(&mut self, other: Self) {
        self.failures.extend(other.failures);
        self.ends += other.ends;
        self.files += other.files;
        self.calls += other.calls;
        self.stated += other.stated;
        self.unstated += other.unstated;
        for (way, count) in other.ways {
            *self.ways.entry(way).or_default() += count;
        }
    }
}

/// What our reader found in one trace.
struct Seen {
    begun: u64,
    returned: u64,
    /// The records of returns, also of those whose begin is missing.
    ends: u64,
}

impl Batch {
    /// The command that repeats one end of it, or all.
    fn again(&self, seed: Option<u64>) -> String {
        let (count, first) = seed.map_or((self.count, self.seed), |seed| (1, seed));
        let way = self.way.as_deref().unwrap_or_default();
        format!("scripts/fire {count} {first} {} {way}", self.stage).trim_end().to_owned()
    }

    /// Runs it and examines what is left.
    pub fn run(&self) -> Outcomes {
        let mut run = self.stage.test_run("violent_ends").arg(self.count.to_string()).arg(self.seed.to_string());
        if let Some(way) = &self.way {
            run = run.arg(way);
        }
        let outcome = run.run();
        let mut outcomes = Outcomes::default();
        let all: Vec<Counted> = outcome.stdout.lines().map(Counted::parse).collect();
        let ends: Vec<&Counted> = all.iter().filter(|counted| counted.process == "itself").collect();
        outcomes.ends = ends.len() as u64;
        for end in &ends {
            *outcomes.ways.entry(end.way.clone()).or_default() += 1;
        }
        if outcomes.ends != self.count || outcome.code > 2 {
            let what = format!("the run ended with {}, {} processes: {}", outcome.code, ends.len(), outcome.stderr);
            outcomes.failures.push(format!("{}: {what}", self.again(None)));
        }
        let seen = self.read(&outcome, &all, &mut outcomes);
        self.judge(&outcome, &all, &seen, &mut outcomes);
        self.import(&outcome, &seen, &mut outcomes);
        if !outcomes.failures.is_empty() {
            keep(&outcome, &mut outcomes);
        }
        outcomes
    }

    /// Reads all traces, and compares each with what its process counted.
    fn read(&self, outcome: &Outcome, all: &[Counted], outcomes: &mut Outcomes) -> BTreeMap<PathBuf, Seen> {
        let mut files = outcome.trace_files();
        outcomes.files = files.len() as u64;
        let copies = trace_copies(outcome);
        files.extend(copies.iter().cloned());
        let mut seen = BTreeMap::new();
        for file in &files {
            let counted = all.iter().find(|counted| belongs_to(file, counted));
            let seed = counted.map(|counted| counted.seed);
            let mut wrong = |what: String| {
                let way = counted.map_or("the process that stays", |counted| &counted.way);
                outcomes.failures.push(format!("{}: {way}: {}: {what}", self.again(seed), file.display()));
            };
            let read = panic::catch_unwind(AssertUnwindSafe(|| {
                let mut trace = Trace::read_of_killed(file);
                if counted.is_some_and(Counted::begins_inside_a_call) {
                    correct_records_of_parent(&mut trace);
                }
                let ends = trace.calls("E").count() as u64;
                let of_the_end = counted.filter(|_| !copies.contains(file));
                let comparison = of_the_end.map(|counted| ledger::compare(counted, Some(&trace)));
                if counted.is_some_and(Counted::may_lack_begins) {
                    remove_returns_without_begin(&mut trace);
                }
                trace.assert_whole();
                let begun = trace.calls("B").count() as u64;
                let returned = trace.calls("E").count() as u64;
                (comparison, Seen { begun, returned, ends })
            }));
            let Ok((comparison, mut calls)) = read else {
                wrong("cannot be read".to_owned());
                continue;
            };
            if counted.is_some_and(Counted::begins_inside_a_call) {
                // Perfetto may leave the call that was corrected open, and one of the parent.
                calls.returned = calls.returned.saturating_sub(2);
            }
            if let Some(comparison) = comparison {
                comparison.wrong.into_iter().for_each(wrong);
                outcomes.stated += comparison.stated;
                outcomes.unstated += comparison.unstated;
                outcomes.calls += calls.returned;
            }
            seen.insert(file.clone(), calls);
        }
        for counted in all {
            let mut wrong = |what: &str| {
                outcomes.failures.push(format!("{}: {}: {what}", self.again(Some(counted.seed)), counted.way));
            };
            if counted.hung {
                wrong("a process did not end in time");
            }
            if !counted.may_end_so() {
                wrong(&format!("the process {} ended by {}", counted.process, counted.ended));
            }
            if !files.iter().any(|file| belongs_to(file, counted)) {
                let comparison = ledger::compare(counted, None);
                comparison.wrong.iter().for_each(|what| wrong(what));
                outcomes.unstated += comparison.unstated;
            }
        }
        seen
    }

    /// Looks for false findings, and compares the calls in the report with those in the traces.
    fn judge(&self, outcome: &Outcome, all: &[Counted], seen: &BTreeMap<PathBuf, Seen>, outcomes: &mut Outcomes) {
        let report = outcome.report();
        let of = |finding: &Value| {
            let pid = finding["process"]["pid"].as_u64();
            all.iter().find(|counted| Some(counted.pid) == pid)
        };
        for finding in report.findings() {
            let counted = of(finding);
            let text = |name: &str| finding[name].as_str().unwrap_or("?");
            let excused = match (text("severity"), text("rule")) {
                (_, "calls-lost") => counted.is_none_or(Counted::may_lack_begins),
                ("note", _) => true,
                (_, "leaked-handle" | "leaked-mapping") => counted.is_some_and(Counted::leaves_in_the_middle),
                // So does the v1 adapter really answer where a limit is reached, and in a forked child, whose parent's
                // other threads may have been inside the adapter, and where a thread was cancelled inside it.
                (_, "success-without-result") => counted
                    .is_some_and(|counted| counted.limited || counted.process == "forked" || counted.way == "cancel"),
                _ => false,
            };
            if !excused {
                let way = counted.map_or("the process that stays", |counted| &counted.way);
                let seed = counted.map(|counted| counted.seed);
                let what = format!("a false finding: {}: {}", text("rule"), text("message"));
                outcomes.failures.push(format!("{}: {way}: {what}", self.again(seed)));
            }
        }
        let recorded: u64 =
            outcome.trace_files().iter().filter_map(|file| seen.get(file)).map(|calls| calls.begun).sum();
        let judged = report.all_calls();
        if recorded != judged {
            let what = format!("the traces hold {recorded} calls, and the report {judged}");
            outcomes.failures.push(format!("{}: {what}", self.again(None)));
        }
    }

    /// Loads the traces with Perfetto's importer: all in one archive, because each start of it takes longer than most
    /// of them. The copies of traces of stopped processes are in another, because they hold the same calls once more.
    /// In an archive, processes and threads whose numbers the system has used twice are one to Perfetto, so what is
    /// wrong there must also be wrong in a trace alone.
    fn import(&self, outcome: &Outcome, seen: &BTreeMap<PathBuf, Seen>, outcomes: &mut Outcomes) {
        for files in [outcome.trace_files(), trace_copies(outcome)] {
            let (files, seen): (Vec<PathBuf>, Vec<&Seen>) =
                files.into_iter().filter_map(|file| seen.get(&file).map(|seen| (file, seen))).unzip();
            if files.is_empty() || is_loaded(&perfetto::opinion(&archive(&files), &[SLICES]), &seen) {
                continue;
            }
            for ((opinion, file), seen) in perfetto::opinions(&files, &[SLICES]).iter().zip(&files).zip(seen) {
                if !is_loaded(opinion, &[seen]) {
                    let begun = seen.begun;
                    let ends = seen.ends;
                    let what = format!(
                        "{}: Perfetto does not load {begun} calls, {ends} returns: {opinion:?}",
                        file.display()
                    );
                    outcomes.failures.push(format!("{}: {what}", self.again(None)));
                }
            }
        }
    }
}

/// Whether Perfetto shows these calls as our reader does.
fn is_loaded(opinion: &perfetto::Opinion, seen: &[&Seen]) -> bool {
    let mut calls = 0;
    let mut open = 0..=0;
    for seen in seen {
        calls += seen.begun;
        // Perfetto lets a return without a begin end the call before it, if that is still open.
        open = open.start() + seen.begun.saturating_sub(seen.ends)..=open.end() + seen.begun - seen.returned;
    }
    // A return without a begin, after a limit, is a problem to Perfetto where it meets another call.
    let known = |problem: &&str| *problem == "misplaced_end_event" && open.start() != open.end();
    if opinion.verdict() == "rejected" || !opinion.problems().iter().all(known) {
        return false;
    }
    let number = |name: &str| opinion.rows(0)[0][name].as_u64().expect("a count");
    number("calls") == calls && open.contains(&number("open"))
}

/// Removes the returns of calls whose begin a limit, or a fork in the middle, kept out of the trace.
fn remove_returns_without_begin(trace: &mut Trace) {
    let mut open = BTreeSet::new();
    trace.records.retain(|record| match record["ph"].as_str() {
        Some("B") => open.insert(trace::call_number(record)),
        Some("E") => open.remove(&trace::call_number(record)),
        _ => true,
    });
}

/// Corrects the records that a handler interrupted to fork, which the child writes with the numbers of its parent: at
/// most the name of the thread, and a call.
fn correct_records_of_parent(trace: &mut Trace) {
    let pid = trace.pid();
    let differs = |record: &&mut Value| record["pid"] != pid || record["cat"] == "api" && record["tid"] != pid;
    for record in trace.records.iter_mut().filter(differs).take(2) {
        (record["pid"], record["tid"]) = (pid.into(), pid.into());
    }
}

/// Whether a process wrote a trace. A program that was executed writes another one, with a number behind its name.
fn belongs_to(file: &Path, counted: &Counted) -> bool {
    let stem = file.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8");
    let mut parts = stem.split('-').skip(2);
    let is_of = parts.next() == Some(counted.pid.to_string().as_str());
    is_of && parts.nth(1).is_some() == (counted.process == "executed")
}

/// The traces of stopped processes as they were then.
fn trace_copies(outcome: &Outcome) -> Vec<PathBuf> {
    let folder = outcome.trace_folder().with_file_name("of-stopped");
    if folder.exists() { trace::files_in(&folder) } else { Vec::new() }
}

fn archive(files: &[PathBuf]) -> PathBuf {
    let folder = files[0].parent().expect("a file lies in a folder");
    let archive = folder.with_extension("tar");
    let names = files.iter().map(|file| file.file_name().expect("a file has a name"));
    let status = Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(folder).args(names).status();
    assert!(status.expect("tar cannot be started").success(), "tar cannot write {}", archive.display());
    archive
}

/// Keeps the traces of a run for a look at them.
fn keep(outcome: &Outcome, outcomes: &mut Outcomes) {
    let kept = tempfile::Builder::new().prefix("urscope-fire-").disable_cleanup(true).tempdir().expect("no folder");
    for file in outcome.trace_files().iter().chain(&trace_copies(outcome)) {
        let parent = file.parent().and_then(Path::file_name).expect("a file lies in a folder");
        let folder = kept.path().join(parent);
        fs::create_dir_all(&folder).expect("no folder for traces");
        fs::copy(file, folder.join(file.file_name().expect("a file has a name"))).expect("a trace can be copied");
    }
    fs::write(kept.path().join("counts"), &outcome.stdout).expect("no file for the counts");
    fs::write(kept.path().join("stderr"), &outcome.stderr).expect("no file for the messages");
    outcomes.failures.push(format!("the traces of the above are in {}", kept.path().display()));
}
