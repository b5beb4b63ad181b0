//! What happens in a run, in terms of a timeline.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};
use urscope_rules::{ExportId, ProcessId, World};
use urscope_schema::{
    api::{Effect, Function},
    call::{Enter, Exit, Nanos, Shape, Values},
    handle::{Handle, Kind},
    trace::records::Header,
};

use super::chrome::{Arrow, Chrome, Lane, Life, Track, Written, text};
use crate::judge::{Ended, FoundFinding, Frame, Listener, Side};

/// Numbers of processes that no kernel gives: for those whose own number is taken.
const MADE_UP: u32 = 1 << 30;

/// Writes down what a hearing hears.
pub(super) struct Timeline<'w> {
    chrome: Chrome<'w>,
    processes: Vec<Process>,
    taken: HashSet<u32>,
    /// The clock of each host: what its first process began with.
    clocks: HashMap<u64, u64>,
    under_way: HashMap<(ProcessId, u64), Call>,
    /// The arrow of the latest get of an export.
    gets: HashMap<ExportId, u64>,
    next: u64,
}

/// A process on the timeline.
struct Process {
    shown_as: u32,
    pid: u32,
    executable: String,
    zero: u64,
    handles: HashMap<Handle, Living>,
    openings: BTreeMap<Handle, Vec<Living>>,
}

/// Something that lives.
#[derive(Clone, Copy)]
struct Living {
    life: Life,
    export: Option<ExportId>,
    size: u64,
}

/// A call that has begun.
struct Call {
    enter: Enter,
    /// The exports whose memory it frees.
    frees: Vec<ExportId>,
    /// The arrow of the latest get, before it began, of the bytes that it opens.
    opens: Option<u64>,
    /// What it ends. It is out of its process by now, because its address may come again before the call returns.
    ends: Option<(Handle, Living)>,
}

impl<'w> Timeline<'w> {
    pub(super) fn new(chrome: Chrome<'w>) -> Self {
        Self {
            chrome,
            processes: Vec::new(),
            taken: HashSet::new(),
            clocks: HashMap::new(),
            under_way: HashMap::new(),
            gets: HashMap::new(),
            next: 0,
        }
    }

    pub(super) fn end(self) -> std::io::Result<Written> {
        self.chrome.end()
    }

    /// A finding of the judgement, whose times count from the start of its host.
    pub(super) fn finding(&mut self, found: &FoundFinding) {
        let here =
            |process: &&Process| process.pid == found.process.pid && process.executable == found.process.executable;
        let Some(pid) = self.processes.iter().find(here).map(|process| process.shown_as) else { return };
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

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn process(&mut self, who: ProcessId) -> Option<&mut Process> {
        self.processes.get_mut(who.0 as usize)
    }

    /// Where and when on the timeline.
    fn at(&self, who: ProcessId, tid: u32, time: Nanos) -> Option<(Track, u64)> {
        let process = self.processes.get(who.0 as usize)?;
        let pid = process.shown_as;
        let tid = if tid == process.pid || tid == 0 { pid } else { tid };
        Some((Track { pid, tid }, time.0.saturating_sub(process.zero)))
    }

    fn born(&mut self, world: &World, who: ProcessId, place: (Track, u64), lane: Lane, handle: Handle) {
        let mut export = None;
        let values = Values {
            data: Some(handle.value).filter(|_| lane == Lane::Export),
            pointer: Some(handle.value),
            object: Some(handle.value),
            ..Values::NONE
        };
        world.about(who, maker(handle.kind), &values, |id| export = Some(id));
        let shared = export.and_then(|id| world.export(id));
        let size = shared.as_ref().and_then(|shared| shared.size).unwrap_or_default();
        let id = self.fresh();
        let mut args = Map::new();
        args.insert("address".into(), json!(format!("{:#x}", handle.value)));
        args.insert("bytes".into(), json!(size));
        args.extend(shared.map(|shared| ("fingerprint".to_owned(), json!(format!("{:#x}", shared.fingerprint)))));
        let (track, at) = place;
        // From what was opened to its close.
        let arrow = (lane == Lane::Import).then_some(Arrow::Out(id));
        let life = Life { lane, id, name: handle.kind.noun() };
        self.chrome.birth(track, &life, at, args, arrow);
        self.keep(who, handle, Living { life, export, size });
        self.count(who, track.pid, at);
    }

    /// Takes something out of a process that a call is about to end.
    fn take(&mut self, who: ProcessId, handle: Handle) -> Option<Living> {
        let process = self.process(who)?;
        match handle.kind.shares() {
            Some(_) => process.handles.remove(&handle),
            None => process.openings.get_mut(&handle)?.pop(),
        }
    }

    /// Puts it in, or back.
    fn keep(&mut self, who: ProcessId, handle: Handle, living: Living) {
        let Some(process) = self.process(who) else { return };
        match living.life.lane {
            Lane::Export => drop(process.handles.insert(handle, living)),
            Lane::Import => process.openings.entry(handle).or_default().push(living),
        }
    }

    fn died(&mut self, who: ProcessId, (track, at): (Track, u64), living: &Living, how: &str) {
        self.chrome.death(track, &living.life, at, how);
        self.count(who, track.pid, at);
    }

    fn count(&mut self, who: ProcessId, pid: u32, at: u64) {
        let Some(process) = self.processes.get(who.0 as usize) else { return };
        let openings = || process.openings.values().flatten();
        let mut exported = BTreeMap::new();
        for life in process.handles.values() {
            exported.insert(life.export, life.size);
        }
        let counts = [("exported", process.handles.len() as u64), ("opened", openings().count() as u64)];
        let bytes = [("exported", exported.values().sum()), ("mapped", openings().map(|life| life.size).sum())];
        self.chrome.counter(pid, "handles", at, &counts);
        self.chrome.counter(pid, "pinned bytes", at, &bytes);
    }
}

/// The call that makes objects of a kind, for asking the world about one.
fn maker(kind: Kind) -> Function {
    match kind {
        Kind::MemHandle => Function::urIPCGetMemHandleExp,
        Kind::PhysicalMemHandle => Function::urIPCGetPhysMemHandleExp,
        Kind::EventHandle => Function::urIPCGetEventHandleExp,
        Kind::PhysicalMem => Function::urIPCOpenPhysMemHandleExp,
        Kind::Event => Function::urIPCOpenEventHandleExp,
        _ => Function::urIPCOpenMemHandleExp,
    }
}

/// What a call that makes or ends something shared is about: the lane, and the object once it is known.
fn subject(function: Function, values: &Values) -> Option<(Lane, Option<Handle>)> {
    let (Effect::Makes(kind) | Effect::Ends(kind) | Effect::Releases(kind)) = function.effect() else { return None };
    let of = |value: Option<u64>| value.filter(|value| *value != 0).map(|value| Handle { kind, value });
    match kind {
        _ if kind.shares().is_some() => Some((Lane::Export, of(values.data))),
        Kind::Mapping => Some((Lane::Import, of(values.pointer))),
        Kind::PhysicalMem | Kind::Event => Some((Lane::Import, of(values.object))),
        _ => None,
    }
}

impl Listener for Timeline<'_> {
    fn begin(&mut self, world: &World, who: ProcessId, header: &Header) {
        let host = world.process(who).map_or(0, |process| process.host);
        let zero = *self.clocks.entry(host).or_insert(header.clock.monotonic_ns);
        let order = self.processes.len();
        let own = self.taken.insert(header.pid);
        let shown_as = if own { header.pid } else { MADE_UP + order as u32 };
        let file = header.executable.rsplit('/').next().unwrap_or_default();
        let name = match (own, host) {
            (true, 0) => file.to_owned(),
            _ => format!("{file} (pid {} on {})", header.pid, header.host),
        };
        self.chrome.process(shown_as, &name, order);
        self.processes.push(Process {
            shown_as,
            pid: header.pid,
            executable: header.executable.clone(),
            zero,
            handles: HashMap::new(),
            openings: BTreeMap::new(),
        });
    }

    fn enter(&mut self, world: &World, who: ProcessId, enter: &Enter) {
        let (mut frees, mut opens) = (Vec::new(), None);
        match enter.function.effect() {
            Effect::Ends(Kind::Usm) => world.about(who, enter.function, &enter.values, |id| frees.push(id)),
            Effect::Makes(_) if enter.values.fingerprint.is_some() => {
                world.about(who, enter.function, &enter.values, |id| opens = self.gets.get(&id).copied());
            }
            _ => {}
        }
        let ends = subject(enter.function, &enter.values).and_then(|(_, handle)| handle);
        let ends = ends.filter(|_| !matches!(enter.function.effect(), Effect::Makes(_)));
        let ends = ends.and_then(|handle| Some((handle, self.take(who, handle)?)));
        self.under_way.insert((who, enter.call), Call { enter: *enter, frees, opens, ends });
    }

    fn exit(&mut self, world: &World, who: ProcessId, exit: &Exit) {
        let Some(Call { enter, frees, opens, ends }) = self.under_way.remove(&(who, exit.call)) else { return };
        let Some((track, from)) = self.at(who, enter.tid, enter.time) else { return };
        let Some((_, to)) = self.at(who, exit.tid, exit.time) else { return };
        let function = enter.function;
        let well = exit.result.is_success();
        let made = subject(function, &exit.values).filter(|_| well && matches!(function.effect(), Effect::Makes(_)));
        let mut arrow = None;
        match made {
            Some((Lane::Export, Some(handle))) => {
                let id = self.fresh();
                arrow = Some(Arrow::Out(id));
                world.about(who, function, &Values { data: Some(handle.value), ..Values::NONE }, |export| {
                    self.gets.insert(export, id);
                });
            }
            Some((Lane::Import, _)) => arrow = opens.map(Arrow::In),
            None | Some((Lane::Export, None)) => {}
        }
        if let Some((handle, living)) = ends {
            // A release ends what it was opened for with the last reference.
            let counted = matches!(handle.kind, Kind::PhysicalMem | Kind::Event);
            if well && !(counted && world.lives(who, handle)) {
                self.died(who, (track, from), &living, function.name());
                arrow = Some(living).filter(|living| living.life.lane == Lane::Import).map(|it| Arrow::In(it.life.id));
            } else {
                self.keep(who, handle, living);
            }
        }
        self.chrome.call(track, function.name(), (from, to), arguments(&enter, Some(exit)), arrow);
        if let Some((lane, Some(handle))) = made.filter(|(lane, _)| *lane == Lane::Export || function.is_ipc()) {
            self.born(world, who, (track, to), lane, handle);
        }
        if well && !frees.is_empty() {
            let handles = self.process(who).map(|process| &process.handles);
            let of_it = |living: &Living| living.export.is_some_and(|export| frees.contains(&export));
            let gone: Vec<_> = handles.into_iter().flatten().filter(|(_, life)| of_it(life)).map(|at| *at.0).collect();
            for handle in gone {
                if let Some(living) = self.take(who, handle) {
                    self.died(who, (track, to), &living, function.name());
                }
            }
        }
    }

    fn end(&mut self, _: &World, who: ProcessId, at: Nanos, ended: Ended) {
        let Some((track, now)) = self.at(who, 0, at) else { return };
        let mut open: Vec<_> =
            self.under_way.extract_if(|(process, _), _| *process == who).map(|(_, call)| call).collect();
        open.sort_by_key(|call| call.enter.call);
        for Call { enter, ends, .. } in open {
            if let Some((handle, living)) = ends {
                self.keep(who, handle, living);
            }
            if let Some((track, from)) = self.at(who, enter.tid, enter.time) {
                self.chrome.unreturned(track, enter.function.name(), from, &arguments(&enter, None));
            }
        }
        let how = match ended {
            Ended::Running => return,
            Ended::Exited => "exit",
            Ended::Killed => "kill",
            Ended::Exec => "exec",
            Ended::Incomplete => "end of trace",
        };
        let Some(process) = self.process(who) else { return };
        let handles = std::mem::take(&mut process.handles).into_values();
        let openings = std::mem::take(&mut process.openings).into_values().flatten();
        let mut left: Vec<_> = handles.chain(openings).collect();
        left.sort_by_key(|living| living.life.id);
        for living in left {
            self.died(who, (track, now), &living, how);
        }
    }
}

/// What a call was asked and answered.
fn arguments(enter: &Enter, exit: Option<&Exit>) -> Map<String, Value> {
    let mut args = Map::new();
    args.insert("call".into(), json!(enter.call));
    let mut show = |name: &str, shape: Shape, value: u64| {
        let shown = match shape {
            Shape::Number if value < 1 << 63 => json!(value),
            Shape::Number | Shape::Hex => json!(format!("{value:#x}")),
        };
        args.insert(name.to_owned(), shown);
    };
    enter.values.for_each(&mut show);
    exit.inspect(|exit| exit.values.for_each(&mut show));
    args.extend(exit.map(|exit| ("result".to_owned(), json!(exit.result.to_string()))));
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
