//! What is written of processes that end, and of what they tell.

use std::path::Path;
use std::process::{Child, Command};

use super::*;

/// A process, and its start as in the name of its trace.
fn sleeper() -> (Child, u64) {
    let sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.id())).unwrap();
    (sleeper, urscope_schema::proc_stat::ProcStat::parse(&stat).unwrap().start)
}

fn trace_of(folder: &Path, pid: u32, start: u64) {
    fs::write(folder.join(format!("urscope-sleep-{pid}-{start}.json")), "[\n").unwrap();
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
    let mut processes = Processes::new(Folder::open(folder.path()).unwrap(), "r", None);
    trace_of(folder.path(), sleeper.id(), start);
    processes.observe();
    assert_eq!(written(folder.path()), [], "it still runs");
    let killed = now();
    kill(&mut sleeper);
    processes.observe();
    processes.observe();
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
    let mut processes = Processes::new(Folder::open(folder.path()).unwrap(), "r", None);
    // The number is that of the process that has ended, but the start is another one.
    trace_of(folder.path(), sleeper.id(), start + 1);
    let before = now();
    processes.observe();
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert_eq!((times.start, times.alive_ns), (start + 1, 0));
    assert!(before <= times.gone_ns && times.gone_ns <= now(), "{times:?}");
}

#[test]
fn an_end_is_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    let mut processes = Processes::new(Folder::open(folder.path()).unwrap(), "r", None);
    trace_of(folder.path(), sleeper.id(), start);
    processes.observe();
    kill(&mut sleeper);
    let never = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let waited = now();
    assert!(!processes.wait(&never, Duration::from_mins(10)));
    processes.observe();
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert!(waited <= times.gone_ns, "{times:?}");
}

#[test]
fn the_thread_writes_what_has_ended_before_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, start) = sleeper();
    let observer = ProcessObserver::start(Folder::open(folder.path()).unwrap(), "r", None).unwrap();
    trace_of(folder.path(), sleeper.id(), start);
    kill(&mut sleeper);
    let appeared: Vec<_> = observer.finish(None).appeared.into_iter().collect();
    assert_eq!(appeared, [format!("urscope-sleep-{}-{start}.json", sleeper.id()).as_str()]);
    let [times] = &*written(folder.path()) else { panic!("not one line") };
    assert_eq!((times.pid, times.start), (sleeper.id(), start));
}

/// A process that sends a notice and kills itself, and has been waited for.
fn dies_after_notice(address: &str, run: &str, untraced: &str) -> u32 {
    let script = "import json, os, socket, sys\n\
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)\n\
        connection.connect('\\0' + sys.argv[1])\n\
        start = int(open('/proc/self/stat').read().rsplit(')')[-1].split()[19])\n\
        notice = dict(run=sys.argv[2], pid_namespace=7, pid=os.getpid(), start=start, untraced=sys.argv[3])\n\
        connection.send(json.dumps(notice).encode())\n\
        os.kill(os.getpid(), 11)\n";
    let mut child = Command::new("python3").args(["-c", script, address, run, untraced]).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn the_signal_of_a_process_that_was_waited_for_is_known_from_its_notice() {
    let folder = tempfile::tempdir().unwrap();
    let observer = ProcessObserver::start(Folder::open(folder.path()).unwrap(), "signals", None).unwrap();
    let pid = dies_after_notice(&observer.address, "signals", "");
    observer.finish(None);
    let written = written(folder.path());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let version: Vec<u32> = release.split('.').map_while(|number| number.parse().ok()).collect();
    if version < vec![6, 16] {
        return assert!(written.len() <= 1, "{written:?}");
    }
    let [times] = &*written else { panic!("not one line: {written:?}") };
    assert_eq!((times.pid, times.pid_namespace, times.signal), (pid, 7, Some(11)));
}

#[test]
fn only_what_names_the_run_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let observer = ProcessObserver::start(Folder::open(folder.path()).unwrap(), "taken", None).unwrap();
    dies_after_notice(&observer.address, "another", "it could not");
    let pid = dies_after_notice(&observer.address, "taken", "this could not");
    assert_eq!(observer.finish(None).untraced, ["this could not"]);
    let written = written(folder.path());
    let [line] = &*written else { panic!("not one line: {written:?}") };
    assert_eq!((line.pid, &*line.run, &*line.untraced), (pid, "taken", "this could not"));
}
