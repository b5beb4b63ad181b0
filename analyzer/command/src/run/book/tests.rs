//! What is written of processes that end, and of what they tell.

use std::path::Path;
use std::process::{Child, Command};

use rustix::event::{EventfdFlags, eventfd};
use urscope_analyzer::analysis::pid_namespace;
use urscope_schema::trace::process_times::FILE;

use super::super::observer::ProcessObserver;
use super::*;

/// A process, and its start as in the name of its trace.
fn sleeper() -> (Child, u64) {
    let sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
    (sleeper, urscope_schema::host::proc_stat::ProcStat::parse(&stat).unwrap().start)
}

fn trace_of(folder: &Path, pid: u32, start: u64) {
    fs::write(folder.join(format!("urscope-sleep-{pid}-{start}.json")), "[\n").unwrap();
}

/// The book of a run to which nobody can tell anything.
fn book(folder: &Path) -> Book {
    Book::open(Folder::open(folder).unwrap(), "r", Err(io::ErrorKind::Unsupported.into()))
}

fn observe(book: &mut Book) {
    book.observe(Woken::default());
}

fn written(folder: &Path) -> Vec<ProcessTimes> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kill(sleeper: &mut Child) {
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_process_that_ends_is_written_once_with_both_times() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    let began = now();
    let mut book = book(folder.path());
    trace_of(folder.path(), sleeper.id(), start);
    observe(&mut book);
    assert_eq!(written(folder.path()), [], "it still runs");
    let killed = now();
    kill(&mut sleeper);
    observe(&mut book);
    observe(&mut book);
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert_eq!((times.pid, times.start), (sleeper.id(), start));
    // An older kernel does not know how a process ended that was waited for.
    assert!(matches!(times.signal, Some(9) | None), "{times:?}");
    assert!(began <= times.alive_ns && times.alive_ns <= killed && killed <= times.gone_ns, "{times:?}");
}

#[test]
fn a_process_that_ends_before_it_is_seen_is_gone_and_one_of_an_earlier_run_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    kill(&mut sleeper);
    trace_of(folder.path(), sleeper.id(), start);
    let mut book = book(folder.path());
    // The number is that of the process that has ended, but the start is another one.
    trace_of(folder.path(), sleeper.id(), start + 1);
    let before = now();
    observe(&mut book);
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert_eq!((times.start, times.alive_ns), (start + 1, 0));
    assert!(before <= times.gone_ns && times.gone_ns <= now(), "{times:?}");
}

#[test]
fn an_end_is_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    let mut book = book(folder.path());
    trace_of(folder.path(), sleeper.id(), start);
    observe(&mut book);
    kill(&mut sleeper);
    let never = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let waited = now();
    let woken = book.wait(&never, Duration::from_mins(10));
    assert!(!woken.is_stopped);
    book.observe(woken);
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert!(waited <= times.gone_ns, "{times:?}");
}

/// Of several that have ended, this thread was woken by the first.
#[test]
fn processes_that_end_together_are_not_given_the_time_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = book(folder.path());
    let mut sleepers = [sleeper(), sleeper()];
    for (sleeper, start) in &sleepers {
        trace_of(folder.path(), sleeper.id(), *start);
    }
    observe(&mut book);
    for (sleeper, _) in &mut sleepers {
        kill(sleeper);
    }
    let killed = now();
    let never = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let woken = book.wait(&never, Duration::from_mins(10));
    assert_eq!(woken.ended, None);
    book.observe(woken);
    let written = written(folder.path());
    assert!(written.len() == 2 && written.iter().all(|times| times.gone_ns >= killed), "{written:?}");
}

#[test]
fn the_thread_writes_what_has_ended_before_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    let observer = ProcessObserver::try_start(Folder::open(folder.path()).unwrap(), "r", None).unwrap();
    trace_of(folder.path(), sleeper.id(), start);
    kill(&mut sleeper);
    let observed = observer.finish(None);
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert_eq!((times.pid, times.start), (sleeper.id(), start));
    assert_eq!(observed.lines(), std::slice::from_ref(times));
}

/// What changes a verdict.
fn said(observed: &Observation) -> Vec<String> {
    observed.of_the_run().map(|line| format!("{}{}", line.untraced, line.unobserved)).collect()
}

/// Sends a notice of a process that kills itself and has been waited for. Returns its number.
fn dies_after_notice(address: &str, more: &str) -> u32 {
    let script = "import json, os, socket, sys\n\
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)\n\
        connection.connect('\\0' + sys.argv[1])\n\
        start = int(open('/proc/self/stat').read().rsplit(')')[-1].split()[19])\n\
        notice = dict(dict(run='r', pid_namespace=7, pid=os.getpid(), start=start), **eval(sys.argv[2]))\n\
        connection.send(json.dumps(notice).encode())\n\
        os.kill(os.getpid(), 11)\n";
    let mut child = Command::new("python3").args(["-c", script, address, more]).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn the_signal_of_a_process_that_was_waited_for_is_known_from_its_notice() {
    let folder = tempfile::tempdir().unwrap();
    let observer = ProcessObserver::try_start(Folder::open(folder.path()).unwrap(), "r", None).unwrap();
    let pid = dies_after_notice(&observer.address, "dict(trace='t')");
    observer.finish(None);
    let written = written(folder.path());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release.split('.').map_while(|number| number.parse().ok()).collect();
    if version < vec![6, 16] {
        return assert!(written.len() <= 2, "{written:?}");
    }
    let [times, _] = &*written else { panic!("not two lines: {written:?}") };
    assert_eq!((times.pid, times.pid_namespace, times.signal), (pid, 7, Some(11)));
}

#[test]
fn only_what_names_the_run_and_the_process_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let observer = ProcessObserver::try_start(Folder::open(folder.path()).unwrap(), "r", None).unwrap();
    let tell = |more: &str| dies_after_notice(&observer.address, more);
    tell("dict(run='another', untraced='it could not')");
    tell(&format!("dict(pid_namespace={}, pid=1, untraced='nor could this')", pid_namespace()));
    let pid = tell("dict(untraced='this could not')");
    let observed = observer.finish(None);
    assert_eq!((said(&observed), observed.lines()[0].pid), (vec!["this could not".to_owned()], pid));
}

#[test]
fn a_trace_that_was_told_or_seen_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = book(folder.path());
    for (pid, is_there) in [(7, true), (8, false)] {
        let trace = format!("urscope-app-{pid}-1.fxt");
        if is_there {
            fs::write(folder.path().join(&trace), "").unwrap();
        }
        book.note_notice(Notice { pid, start: 1, trace, ..Notice::default() }, None);
    }
    for (pid, kind) in [(7, Kind::Traced), (8, Kind::Traced), (9, Kind::Traced), (10, Kind::Untraced)] {
        book.note_looked(Looked { key: (pid, 1), own: pid, executable: "/bin/app".into(), kind, loaded: "" });
    }
    let observed = book.close(None);
    let said = said(&observed);
    let starts: Vec<_> = said.iter().filter_map(|said| said.split(':').next()).collect();
    let expected = [
        "process 8 could not keep its trace urscope-app-8-1.fxt",
        "app (pid 9) could not write its trace",
        "app (pid 10) could not write its trace",
        "there was no socket by which processes could tell of their traces (unsupported)",
    ];
    assert_eq!(starts, expected);
}
