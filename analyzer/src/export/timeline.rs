//! What happens in a run, in terms of a timeline.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use urscope_schema::call::Shape;

use super::chrome::{Chrome, Track, Written, text};
use crate::{
    account::{Began, Called, Counts, How, Life, Scribe},
    judge::{FoundFinding, Frame, Side},
};

/// Numbers of processes that no kernel gives: for those whose own number is taken.
const MADE_UP: u32 = 1 << 30;

/// Draws what happens.
pub(super) struct Timeline<'w> {
    chrome: Chrome<'w>,
    processes: Vec<Process>,
    taken: HashSet<u32>,
}

/// A process on the timeline.
struct Process {
    shown_as: u32,
    pid: u32,
    host: String,
    executable: String,
    began: u64,
}

impl<'w> Timeline<'w> {
    pub(super) fn new(chrome: Chrome<'w>) -> Self {
        Self { chrome, processes: Vec::new(), taken: HashSet::new() }
    }

    pub(super) fn end(self) -> std::io::Result<Written> {
        self.chrome.end()
    }

    /// A finding of the judgement.
    pub(super) fn finding(&mut self, found: &FoundFinding) {
        let Side { pid, host, executable, .. } = &found.process;
        let like = |known: &&Process| known.pid == *pid && known.host == *host && known.executable == *executable;
        let known = || self.processes.iter().filter(like);
        // A number that came again is that of the process which had begun by then.
        let by_then = known().rfind(|known| known.began <= found.time_ns);
        let Some(pid) = by_then.or_else(|| known().next()) else { return };
        let pid = pid.shown_as;
        let tid = if found.process.tid == 0 { pid } else { found.process.tid };
        let mut args = Map::new();
        args.insert("rule".into(), json!(text(&found.rule)));
        args.insert("severity".into(), json!(found.severity.name()));
        args.insert("message".into(), json!(text(&found.message)));
        args.insert("advice".into(), json!(text(&found.advice)));
        args.insert("count".into(), json!(found.count));
        args.extend(found.fingerprint.iter().map(|bytes| ("fingerprint".to_owned(), json!(text(bytes)))));
        args.insert("here".into(), json!(stack(&found.process)));
        args.extend(found.other.as_ref().map(|other| ("there".to_owned(), json!(stack(other)))));
        self.chrome.finding(Track { pid, tid }, &text(&found.rule), found.time_ns, &args);
    }

    /// Where a thread is on the timeline.
    fn track(&self, process: u32, tid: u32) -> Option<Track> {
        let process = self.processes.get(process as usize)?;
        let pid = process.shown_as;
        Some(Track { pid, tid: if tid == process.pid || tid == 0 { pid } else { tid } })
    }
}

impl Scribe for Timeline<'_> {
    fn process(&mut self, began: &Began<'_>) {
        let header = began.header;
        let own = self.taken.insert(header.pid);
        let shown_as = if own { header.pid } else { MADE_UP + began.process };
        let file = header.executable.rsplit('/').next().unwrap_or_default();
        let name = match (own, began.host) {
            (true, 0) => file.to_owned(),
            _ => format!("{file} (pid {} on {})", header.pid, header.host),
        };
        self.chrome.process(shown_as, &name, began.process as usize);
        let (host, executable) = (header.host.clone(), header.executable.clone());
        self.processes.push(Process { shown_as, pid: header.pid, host, executable, began: began.at });
    }

    fn call(&mut self, call: &Called<'_>) {
        let Some(track) = self.track(call.process, call.tid) else { return };
        let (name, args) = (call.function.name(), arguments(call));
        match call.to {
            Some(to) => self.chrome.call(track, name, (call.from, to), args, call.arrow()),
            None => self.chrome.unreturned(track, name, call.from, &args),
        }
    }

    fn birth(&mut self, life: &Life) {
        let Some(track) = self.track(life.process, life.tid) else { return };
        let mut args = Map::new();
        args.insert("address".into(), json!(format!("{:#x}", life.address)));
        args.insert("bytes".into(), json!(life.bytes.unwrap_or_default()));
        args.extend(life.fingerprint.map(|bytes| ("fingerprint".to_owned(), json!(format!("{bytes:#x}")))));
        self.chrome.birth(track, life, args);
    }

    fn death(&mut self, life: &Life, at: u64, how: How) {
        if let Some(track) = self.track(life.process, life.tid) {
            self.chrome.death(track, life, at, how.name());
        }
    }

    fn counts(&mut self, process: u32, at: u64, counts: &Counts) {
        let Some(Track { pid, .. }) = self.track(process, 0) else { return };
        let lives = [("exported", counts.all_handles()), ("opened", counts.all_openings())];
        let bytes = [("exported", counts.exported_bytes), ("mapped", counts.mapped_bytes)];
        self.chrome.counter(pid, "handles", at, &lives);
        self.chrome.counter(pid, "pinned bytes", at, &bytes);
    }
}

/// What a call was asked and answered.
fn arguments(call: &Called<'_>) -> Map<String, Value> {
    let mut args = Map::new();
    args.insert("call".into(), json!(call.number));
    let mut show = |name: &str, shape: Shape, value: u64| {
        let shown = match shape {
            Shape::Number if value < 1 << 63 => json!(value),
            Shape::Number | Shape::Hex => json!(format!("{value:#x}")),
        };
        args.insert(name.to_owned(), shown);
    };
    call.asked.for_each(&mut show);
    call.answered.for_each(&mut show);
    args.extend(call.result.map(|result| ("result".to_owned(), json!(result.to_string()))));
    args
}

/// A call stack, a line for each frame.
fn stack(side: &Side) -> Vec<String> {
    let line = |Frame { function, file, line, module, offset }: &Frame| match (function, file, line) {
        (Some(function), Some(file), Some(line)) => format!("{function} ({file}:{line})"),
        (Some(function), ..) => format!("{function} ({module})"),
        _ => format!("{offset} ({module})"),
    };
    side.stack.iter().map(|frame| text(&line(frame))).collect()
}
