//! Makes traces from scenarios, as the shim would write them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use urscope_analyzer::{Judgement, Options, judge};
use urscope_rule_pages::scenario::{Event, Scenario};
use urscope_rules::{End as Fate, Process, ProcessId};
use urscope_schema::call::Nanos;
use urscope_schema::trace::chrome::write::{self, End, Line, Totals};
use urscope_schema::trace::process_times::{FILE, ProcessTimes};
use urscope_schema::trace::records::{Clock, Device, EntryPoint, Header, Hex, Rights};
use urscope_schema::trace::{Form, file_name};

/// The time at which scenarios begin, in nanoseconds of the monotonic clock.
pub(crate) const START: u64 = Clock::GRID + 5_000_000_000;

/// Two processes that make several mistakes.
pub(crate) const FAULTY_RUN: &str = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nproducer: put h\n\
                       producer: free p\nconsumer/2: open h -> m begins\nconsumer: killed\nproducer: get q -> i\nproducer: get q -> j";

fn adapter() -> EntryPoint {
    EntryPoint {
        kind: "adapter-table".into(),
        library: "libur_adapter_level_zero_v2.so.0".into(),
        slots: 13,
        ipc_slots: 11,
        functions: vec!["urUSMFree".into(), "urIPCGetMemHandleExp".into()],
        ..EntryPoint::default()
    }
}

/// The trace files of a scenario, by name.
pub(crate) fn files(scenario: &str) -> BTreeMap<String, Vec<u8>> {
    files_with(scenario, |_, _| {})
}

/// The trace files of a scenario, with headers and entry points changed by `change`.
pub(crate) fn files_with(scenario: &str, change: impl Fn(&mut Header, &mut EntryPoint)) -> BTreeMap<String, Vec<u8>> {
    let events =
        scenario.parse::<Scenario>().and_then(|scenario| scenario.events()).unwrap_or_else(|error| panic!("{error}"));
    let base = Clock::base(Nanos(START));
    let mut pids = Vec::new();
    let mut files = Vec::new();
    let begun: Vec<Event> = events.iter().filter(|event| matches!(event, Event::Begin(..))).cloned().collect();
    let mut observed = Vec::new();
    let mut kept = Vec::new();
    let add = |files: &mut Vec<(String, Vec<u8>)>, who: ProcessId, pids: &[u32], write: &dyn Fn(&mut Line, u32)| {
        let mut line = Line::default();
        write(&mut line, pids[who.0 as usize]);
        files[who.0 as usize].1.extend_from_slice(line.bytes().unwrap());
    };
    for event in events {
        match event {
            Event::Begin(process, at) => {
                let name = process.executable.rsplit('/').next().unwrap().to_owned();
                let rights = process.rights;
                let mut header = Header {
                    format: 1,
                    urscope: "0.1.0".into(),
                    host: "node".into(),
                    boot_id: format!("boot {}", process.host),
                    pid: process.pid,
                    start: process.start,
                    parent: process.forked_from.map_or(1, |parent| pids[parent.0 as usize]),
                    forked: process.forked_from.is_some(),
                    executable: process.executable.to_string(),
                    command: vec![process.executable.to_string(), "--role".into()],
                    uid: rights.uid.unwrap_or_default(),
                    pid_namespace: rights.pid_namespace.unwrap_or(u64::from(rights.uid.is_some())),
                    forked_ns: process.started.map(|at| START + at.0),
                    fork_returned_ns: process.started.map(|at| START + at.0),
                    rights: Rights {
                        ptrace_scope: rights.ptrace_scope,
                        sys_ptrace: rights.traces_any,
                        seccomp: rights.seccomp,
                        dumpable: rights.dumpable,
                        descriptors: rights.descriptors,
                    },
                    clock: Clock { base_ns: base, monotonic_ns: START + at.0, ..Clock::default() },
                    ..Header::default()
                };
                let mut entry_point = adapter();
                change(&mut header, &mut entry_point);
                let mut bytes = write::start(header.pid, &name, "run");
                bytes.extend(write::record(header.pid, &header));
                bytes.extend(write::record(header.pid, &entry_point));
                pids.push(header.pid);
                files.push((file_name(Form::Chrome, &name, header.pid, header.start, 0), bytes));
            }
            Event::Enter(who, mut enter) => {
                enter.time.0 += START;
                add(&mut files, who, &pids, &|line, pid| line.enter(pid, base, &enter));
            }
            Event::Exit(who, mut exit) => {
                exit.time.0 += START;
                add(&mut files, who, &pids, &|line, pid| line.exit(pid, base, &exit));
            }
            Event::Device(who, (handle, native), index, name) => {
                let device = Device { via: 1, device: Hex(handle), native: native.map(Hex), index, name };
                files[who.0 as usize].1.extend(write::record(pids[who.0 as usize], &device));
            }
            Event::Descriptors(who, open, at) => {
                let at = Nanos(START + at.0);
                add(&mut files, who, &pids, &|line, pid| line.descriptors(pid, pid, at, base, open));
            }
            Event::Executed(who, mut executed) => {
                (executed.begin.0, executed.end.0) = (executed.begin.0 + START, executed.end.0 + START);
                add(&mut files, who, &pids, &|line, pid| line.executed(pid, base, &executed));
            }
            Event::Synchronization(who, mut by) => {
                by.time.0 += START;
                add(&mut files, who, &pids, &|line, pid| line.synchronization(pid, base, &by));
            }
            Event::Observed(who, alive, gone) => {
                let Event::Begin(process, _) = &begun[who.0 as usize] else { unreachable!("only begins are kept") };
                observed.extend(serde_json::to_vec(&times(process, [alive, gone])).unwrap());
                observed.push(b'\n');
            }
            Event::Keeps(who, descriptor) => kept.push((who, descriptor)),
            Event::End(who, how, at) => {
                let bytes = &mut files[who.0 as usize].1;
                let lost = u64::from(how == Fate::Incomplete);
                if matches!(how, Fate::Exited | Fate::Incomplete) {
                    let clock = Clock { monotonic_ns: START + at.0, ..Clock::default() };
                    let kept: Vec<u32> =
                        kept.iter().filter(|(whose, _)| *whose == who).map(|(_, kept)| *kept).collect();
                    let totals = Totals { returned: 0, lost, called: &|_| 0, kept: &kept };
                    bytes.extend_from_slice(End::new(pids[who.0 as usize], "exit", &totals, &clock).bytes().unwrap());
                } else {
                    bytes.resize(bytes.len().next_multiple_of(4096), b' ');
                }
            }
        }
    }
    if !observed.is_empty() {
        files.push((FILE.into(), observed));
    }
    files.into_iter().collect()
}

/// When a process was seen, in the form of `urscope run`.
fn times(process: &Process, [alive, gone]: [Nanos; 2]) -> ProcessTimes {
    ProcessTimes {
        boot_id: format!("boot {}", process.host),
        pid: process.pid,
        start: process.start,
        alive_ns: alive.0.saturating_add(START),
        gone_ns: gone.0.saturating_add(START),
        ..ProcessTimes::default()
    }
}

/// The file of a scenario of one process in which the exit record of the first get is late: it comes after the next 100
/// lines.
pub(crate) fn one_late(scenario: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(scenario);
    let bytes = files.values_mut().next().unwrap();
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let got = lines.iter().position(|line| {
        let text = String::from_utf8_lossy(line);
        text.contains("\"ph\":\"E\"") && text.contains("\"data\"")
    });
    let line = lines.remove(got.unwrap());
    lines.insert(got.unwrap() + 100, line);
    *bytes = lines.concat();
    files
}

/// The judgement of trace files.
pub(crate) fn judged(files: &BTreeMap<String, Vec<u8>>) -> Judgement {
    judged_with(files, &Options::default())
}

/// The judgement of trace files, with options.
pub(crate) fn judged_with(files: &BTreeMap<String, Vec<u8>>, options: &Options) -> Judgement {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), files);
    let mut judgement = judge(&[folder.path().to_owned()], options).unwrap();
    for process in &mut judgement.processes {
        process.file = Path::new(&process.file).file_name().unwrap().to_str().unwrap().to_owned();
    }
    judgement
}

/// Writes trace files, and what stands beside them, and returns the paths of the traces.
pub(crate) fn put(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Vec<PathBuf> {
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    files.keys().filter(|name| *name != FILE).map(|name| folder.join(name)).collect()
}

/// The codes of the findings, with their counts.
pub(crate) fn codes(judgement: &Judgement) -> Vec<(&str, u64)> {
    judgement.findings.iter().map(|finding| (finding.rule.as_str(), finding.count)).collect()
}
