//! A scenario as records: names become addresses, steps become calls.

use std::{collections::HashMap, sync::Arc};

use urscope_rules::{Checker, End, Finding, Process, ProcessId, Tracker};
use urscope_schema::api::unified_runtime::constants::{
    UR_EXP_EVENT_FLAG_ENABLE_PROFILING, UR_EXP_EVENT_FLAG_IPC_EXP, UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE,
};
use urscope_schema::api::{Function, ResultCode, UNIFIED_RUNTIME};
use urscope_schema::call::{Enter, Executed, Exit, Nanos, Rows, Synchronization, Values};
use urscope_schema::handle::{Kind, checksum, fingerprint};
use urscope_schema::operation::{ACCESSED, NON_BLOCKING};

use super::handle_data::{made_up, size as data_size};
use super::interfaces::{by_interface, descriptor_of};
use super::{Call, Fate, REFUSED, Ran, Scenario, ScenarioError, SetRight, Step, Verb};

/// One step, in the form in which a tracker takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process begins; it gets the next number.
    Begin(Process, Nanos),
    /// A call begins.
    Enter(ProcessId, Enter),
    /// A call returns.
    Exit(ProcessId, Exit),
    /// A process has a device: its handle and its native handle, its index, and its name.
    Device(ProcessId, (u64, Option<u64>), Option<u32>, String),
    /// So many descriptors are open in a process.
    Descriptors(ProcessId, u64, Nanos),
    /// A process still has the descriptor with this number when it ends.
    Keeps(ProcessId, u32),
    /// The device has executed a command.
    Executed(ProcessId, Executed),
    /// A process orders commands, or its host knows that some have completed.
    Synchronization(ProcessId, Synchronization),
    /// A process ends.
    End(ProcessId, End, Nanos),
    /// A process is seen from outside: when it is last seen running, and when it is first seen to be gone.
    Observed(ProcessId, Nanos, Nanos),
}

/// The device of a call that names none.
const DEVICE: u64 = 0xd0;

/// The size of physical memory.
const PHYSICAL: u64 = 1 << 16;

/// How physical memory is mapped.
const READ_WRITE: u64 = UR_VIRTUAL_MEM_ACCESS_FLAG_READ_WRITE as u64;

/// How long a step takes.
const STEP: u64 = 1000;

/// What these rules find in records.
pub fn judge(events: impl IntoIterator<Item = Event>, mut checker: Checker) -> Vec<Finding> {
    let mut tracker = Tracker::new();
    for event in events {
        match event {
            Event::Begin(process, _) => drop(tracker.begin(process)),
            Event::Enter(who, enter) => tracker.enter(who, &enter.begun(&enter.nulls()), &mut checker),
            Event::Exit(who, exit) => tracker.exit(who, &exit.returned(), &mut checker),
            Event::Device(who, (handle, native), index, name) => tracker.device(who, handle, native, index, &name),
            Event::Descriptors(who, open, at) => tracker.descriptors(who, open, at, &mut checker),
            Event::Keeps(who, descriptor) => tracker.keeps(who, descriptor),
            Event::Executed(who, executed) => tracker.executed(who, &executed, &mut checker),
            Event::Synchronization(who, by) => tracker.synchronization(who, &by, &mut checker),
            Event::Observed(who, alive, gone) => tracker.observed(who, alive, gone),
            Event::End(who, how, at) => {
                tracker.missing(who, u64::from(how == End::Incomplete), 0);
                tracker.end(who, how, at, &mut checker);
            }
        }
    }
    tracker.finish(&mut checker);
    checker.take()
}

impl Scenario {
    /// What the rules find in it.
    pub fn play(&self) -> Result<Vec<Finding>, ScenarioError> {
        self.play_with(Checker::new())
    }

    /// What these rules find in it.
    pub fn play_with(&self, checker: Checker) -> Result<Vec<Finding>, ScenarioError> {
        Ok(judge(self.events()?, checker))
    }

    /// Its records.
    pub fn events(&self) -> Result<Vec<Event>, ScenarioError> {
        Ok(self.player()?.events)
    }

    /// The numbers of the lines of each process's calls, in the order of both.
    pub fn lines_of_calls(&self) -> Result<Vec<Vec<usize>>, ScenarioError> {
        Ok(self.player()?.actors.into_iter().map(|actor| actor.calls).collect())
    }

    fn player(&self) -> Result<Player, ScenarioError> {
        let mut player = Player::default();
        for (index, line) in self.lines.iter().enumerate() {
            let played = player.play(line);
            played.map_err(|why| ScenarioError { line: index + 1, why })?;
        }
        for actor in 0..player.actors.len() {
            player.end(actor, End::Exited);
        }
        Ok(player)
    }
}

#[derive(Default)]
struct Player {
    events: Vec<Event>,
    names: HashMap<String, usize>,
    actors: Vec<Actor>,
    /// Addresses by name, for all processes: a handle's name is known where its bytes arrive.
    addresses: HashMap<String, u64>,
    bytes: HashMap<String, u64>,
    now: u64,
}

struct Actor {
    host: u32,
    /// The numbers of the lines of its calls.
    calls: Vec<usize>,
    over: bool,
    /// The latest command.
    command: u64,
    open: HashMap<u32, (Enter, Values)>,
}

impl Player {
    fn actor(&mut self, name: &str, host: u32, parent: Option<usize>) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let index = self.actors.len();
        self.names.insert(name.to_owned(), index);
        self.actors.push(Actor { host, calls: Vec::new(), over: false, command: 0, open: HashMap::new() });
        let process = Process {
            pid: 100 * (index as u32 + 1),
            start: index as u64 + 1,
            host: u64::from(host),
            executable: format!("/app/{name}").into(),
            rank: None,
            parent: parent.map(|parent| 100 * (parent as u32 + 1)),
            forked_from: parent.map(|parent| ProcessId(parent as u32)),
            started: parent.map(|_| Nanos(self.now)),
            rights: Arc::default(),
        };
        self.events.push(Event::Begin(process, Nanos(self.now)));
        index
    }

    fn address(&mut self, name: &str) -> u64 {
        if name == "null" {
            return 0;
        }
        let next = 0x1000_0000 + 0x100_0000 * self.addresses.len() as u64;
        *self.addresses.entry(name.to_owned()).or_insert(next)
    }

    /// The device of a call.
    fn device(&mut self, call: &Call) -> u64 {
        call.device.as_deref().map_or(DEVICE, |device| self.address(device))
    }

    fn play(&mut self, line: &super::Line) -> Result<(), String> {
        self.now += STEP;
        let actor = self.actor(&line.process, line.host, None);
        let pid = ProcessId(actor as u32);
        if let Step::Seen(running) = line.step {
            self.seen(pid, running);
            return Ok(());
        }
        if self.actors.get(actor).is_none_or(|actor| actor.over) {
            return Err(format!("{} has ended", line.process));
        }
        match &line.step {
            Step::Fork(child) => {
                if self.names.contains_key(child) {
                    return Err(format!("{child} exists already"));
                }
                let host = self.actors.get(actor).map_or(1, |actor| actor.host);
                self.actor(child, host, Some(actor));
            }
            Step::Ends(how) => self.end(actor, *how),
            Step::Becomes(next) => {
                self.end(actor, End::Exec);
                self.actor(next, line.host, None);
            }
            Step::Seen(_) => {}
            Step::Ran(ran) => self.ran(actor, ran),
            Step::Synchronizes(kind, queue, event) => {
                let [queue, event] = [queue, event].map(|name| name.as_ref().map(|name| self.address(name)));
                let tid = tid_of(actor, line.thread);
                let by = Synchronization { tid, time: Nanos(self.now), kind: *kind, queue, event };
                self.events.push(Event::Synchronization(pid, by));
            }
            Step::May(right, value) => self.may(pid, *right, *value),
            Step::Device(device, index, name) => {
                let handle = self.address(device);
                self.events.push(Event::Device(pid, (handle, None), *index, name.clone()));
            }
            Step::Descriptors(open) => self.events.push(Event::Descriptors(pid, *open, Nanos(self.now))),
            Step::Keeps(name) => {
                let descriptor = descriptor_of(self.address(name));
                self.events.push(Event::Keeps(pid, descriptor));
            }
            Step::Returns(success) => {
                let open = self.actors.get_mut(actor).and_then(|actor| actor.open.remove(&line.thread));
                let (enter, answer) = open.ok_or("this thread is not inside a call")?;
                self.exit(pid, &enter, if *success { Ok(answer) } else { Err(REFUSED) });
            }
            Step::Call(call) => {
                let Some(function) = call.function else { return Ok(()) };
                let of_runtime = self.values(actor, function, call);
                let (function, values, answer) = by_interface(call.interface, of_runtime);
                let time = Nanos(self.now);
                let mut values = values;
                let Some(caller) = self.actors.get_mut(actor) else { return Err("no such process".into()) };
                if caller.open.contains_key(&line.thread) {
                    return Err("this thread is still inside a call".into());
                }
                caller.calls.push(line.number);
                let number = caller.calls.len() as u64;
                if matches!(call.verb, Verb::Copy | Verb::Launch) {
                    caller.command = number;
                } else if matches!(call.verb, Verb::Close | Verb::Free | Verb::Unmap) && !call.queued {
                    values.unfinished = call.unfinished.then_some(0);
                }
                let enter = Enter { function, call: number, tid: tid_of(actor, line.thread), time, values };
                if call.fate == Fate::Begins {
                    caller.open.insert(line.thread, (enter, answer));
                }
                self.events.push(Event::Enter(pid, enter));
                self.now += call.takes.unwrap_or_default() * 1_000_000;
                match call.fate {
                    Fate::Begins => {}
                    Fate::Returns => self.exit(pid, &enter, Ok(answer)),
                    Fate::Fails(why) | Fate::MayFail(why) => self.exit(pid, &enter, Err(why)),
                }
            }
        }
        Ok(())
    }

    /// Records that a process is seen. It is known when the process ends.
    fn seen(&mut self, who: ProcessId, running: bool) {
        let now = Nanos(self.now);
        let never = Nanos(u64::MAX);
        let known = self.events.iter_mut().find(|event| matches!(event, Event::Observed(whose, ..) if *whose == who));
        match (known, running) {
            (Some(Event::Observed(_, alive, _)), true) => *alive = now,
            (Some(Event::Observed(_, _, gone)), false) => *gone = now,
            (_, running) => {
                let end = self.events.iter().position(|event| matches!(event, Event::End(whose, ..) if *whose == who));
                let (alive, gone) = if running { (now, never) } else { (Nanos(0), now) };
                self.events.insert(end.unwrap_or(self.events.len()), Event::Observed(who, alive, gone));
            }
        }
    }

    fn ran(&mut self, actor: usize, ran: &Ran) {
        let Ran { access: Some(access), size, offset, rows, pitch, since, .. } = *ran else { return };
        let memory = self.address(&ran.memory);
        let call = self.actors.get(actor).map_or(0, |actor| actor.command);
        let begin = Nanos(self.now.saturating_sub(since * STEP));
        let end = Nanos(self.now);
        let rows = Rows { offset, length: size, pitch, count: rows };
        let executed = Executed { call, tid: 1, begin, end, memory, rows, access };
        self.events.push(Event::Executed(ProcessId(actor as u32), executed));
    }

    /// Records a right of a process. It is part of the process's beginning.
    fn may(&mut self, who: ProcessId, set: SetRight, value: u64) {
        let mut begun = self.events.iter_mut().filter_map(|event| match event {
            Event::Begin(process, _) => Some(process),
            _ => None,
        });
        if let Some(process) = begun.nth(who.0 as usize) {
            set(Arc::make_mut(&mut process.rights), value);
        }
    }

    fn exit(&mut self, who: ProcessId, enter: &Enter, answer: Result<Values, u32>) {
        let Enter { function, call, tid, .. } = *enter;
        let (result, values) = match answer {
            Ok(values) => (ResultCode::SUCCESS, values),
            Err(why) => (ResultCode(why), Values::default()),
        };
        let time = Nanos(self.now + STEP / 2);
        self.events.push(Event::Exit(who, Exit { function, call, tid, time, result, values }));
    }

    fn end(&mut self, actor: usize, how: End) {
        if let Some(over) = self.actors.get_mut(actor).map(|actor| &mut actor.over)
            && !std::mem::replace(over, true)
        {
            self.now += STEP;
            self.events.push(Event::End(ProcessId(actor as u32), how, Nanos(self.now)));
        }
    }

    /// An allocation of USM. A queue has a context and a device of its own.
    fn alloc(&mut self, call: &Call, device: Option<u64>, within: Values, pointer: u64) -> (Function, Values, Values) {
        use Function as F;
        let function = match (call.usm.as_deref(), call.queued) {
            (Some("host"), false) => F::urUSMHostAlloc,
            (Some("host"), true) => F::urEnqueueUSMHostAllocExp,
            (Some(_), false) => F::urUSMSharedAlloc,
            (Some(_), true) => F::urEnqueueUSMSharedAllocExp,
            (None, false) => F::urUSMDeviceAlloc,
            (None, true) => F::urEnqueueUSMDeviceAllocExp,
        };
        let device = device.filter(|_| function != F::urUSMHostAlloc);
        let object = call.pool.as_deref().map(|pool| self.address(pool));
        let count = call.waits.then_some(1);
        let of = if call.queued { Values::NONE } else { Values { device, ..within } };
        let made = Values { pointer: Some(pointer), ..Values::NONE };
        (function, Values { size: call.size, object, count, ..of }, made)
    }

    /// What a get of an address returns.
    fn got(&mut self, actor: usize, call: &Call, address: u64, data: Option<u64>) -> Values {
        let (Some(data), Some(name)) = (data, call.result.clone()) else { return Values::default() };
        let of_address = fingerprint(&[(actor as u64).to_le_bytes(), address.to_le_bytes()].concat());
        let bytes = match (call.verb, &call.like) {
            (Verb::GetPhysical, Some(other)) => self.bytes_of(other, None),
            (Verb::GetPhysical, None) => fingerprint(&[of_address.to_le_bytes(), data.to_le_bytes()].concat()),
            _ => of_address,
        };
        self.bytes.insert(name, bytes);
        // The block that the driver exports.
        let exported =
            Values { pointer: call.exposes.map(|_| address - call.offset), size: call.exposes, ..Values::default() };
        let checksum = Some(checksum(&made_up(bytes, call)));
        let fingerprint = Some(bytes);
        Values { data: Some(data), data_size: data_size(call), fingerprint, checksum, ..exported }
    }

    /// The fingerprint of the handle data of that name. One that was never got, or cut to another size, has bytes of
    /// its own.
    fn bytes_of(&self, name: &str, size: Option<u64>) -> u64 {
        match (self.bytes.get(name), size) {
            (Some(bytes), None) => *bytes,
            _ if name == "zeros" => 0,
            (_, size) => fingerprint(&[name.as_bytes(), &size.unwrap_or_default().to_le_bytes()].concat()),
        }
    }

    /// The function of a call, its arguments, and its results if it succeeds.
    fn values(&mut self, actor: usize, function: Function, call: &Call) -> (Function, Values, Values) {
        let name = call.object.as_deref().unwrap_or_default();
        let address = self.address(name).wrapping_add(call.offset);
        let result = call.result.as_deref().map(|name| self.address(name));
        let context = match &call.context {
            Some(context) => self.address(context),
            None => 0xc000 + actor as u64,
        };
        let device = Some(self.device(call));
        let nothing = Values::default();
        let within = Values { context: Some(context), ..nothing };
        let pointer = Values { pointer: Some(address), ..within };
        let object = Values { object: Some(address), ..nothing };
        let object_within = Values { object: Some(address), ..within };
        let as_context = Values { context: Some(address), ..nothing };
        let shared = if call.shared { UR_EXP_EVENT_FLAG_IPC_EXP } else { 0 };
        let profiled = if call.profiled { UR_EXP_EVENT_FLAG_ENABLE_PROFILING } else { 0 };
        let flags = Some(u64::from(shared | profiled));
        let count = call.waits.then_some(1);
        let mapped = call.size.or(Some(PHYSICAL));
        let (enter, exit) = match call.verb {
            Verb::Context if call.device.is_none() => (nothing, as_context),
            Verb::Context => (Values { count: Some(1), device, ..nothing }, as_context),
            Verb::Retain | Verb::Release => (as_context, nothing),
            Verb::Pool => (Values { flags: Some(0), ..within }, object),
            Verb::Alloc => return self.alloc(call, device, within, address),
            Verb::Free if call.queued => {
                return (Function::urEnqueueUSMFreeExp, Values { pointer: Some(address), count, ..nothing }, nothing);
            }
            Verb::Free | Verb::Close => (pointer, nothing),
            Verb::Get => (pointer, self.got(actor, call, address, result)),
            Verb::GetPhysical => (object_within, self.got(actor, call, address, result)),
            Verb::GetEvent => (object, self.got(actor, call, address, result)),
            Verb::Put | Verb::PutPhysical | Verb::PutEvent => (Values { data: Some(address), ..within }, nothing),
            Verb::Open | Verb::OpenPhysical | Verb::OpenEvent => {
                let data = Some(0xda7a_0000 + actor as u64);
                let bytes = self.bytes_of(name, call.size);
                let opened = made_up(bytes, call);
                let checksum = Some(checksum(&opened));
                let is_made_up = bytes == 0 || call.flipped.is_some();
                let fingerprint = Some(if is_made_up { fingerprint(&opened) } else { bytes });
                let device = device.filter(|_| call.verb != Verb::OpenEvent);
                let opened = match call.verb {
                    Verb::Open => Values { pointer: result, changed: call.overwrites, ..nothing },
                    _ => Values { object: result, ..nothing },
                };
                (Values { device, data, data_size: data_size(call), fingerprint, checksum, ..within }, opened)
            }
            Verb::Copy | Verb::Launch => {
                let accessed = !call.on_host;
                let non_blocking = call.non_blocking;
                let noticed =
                    [(accessed, ACCESSED), (non_blocking, NON_BLOCKING)].into_iter().filter(|(is_so, _)| *is_so);
                let noticed = Some(noticed.fold(0, |bits, (_, bit)| bits | bit)).filter(|bits| *bits != 0);
                let queue = call.queue.as_ref().map(|queue| self.address(queue));
                (Values { pointer: Some(address), size: call.size, value: Some(0), noticed, queue, ..within }, nothing)
            }
            Verb::Support => {
                let asked = match name {
                    "memory" => Kind::Usm,
                    "physical" => Kind::PhysicalMem,
                    _ => Kind::Event,
                };
                let property = UNIFIED_RUNTIME.support.iter().find(|(_, kind)| *kind == asked);
                let property = property.map(|it| u64::from(it.0));
                let yes = call.result.as_deref() == Some("yes");
                (Values { device, property, ..nothing }, Values { value: Some(u64::from(yes)), ..nothing })
            }
            Verb::Physical => (Values { flags, device, size: Some(PHYSICAL), ..within }, object),
            Verb::ClosePhysical => (object_within, nothing),
            Verb::Map => {
                let pointer = result.map(|start| start + call.offset);
                let object = Some(address - call.offset);
                let offset = Some(0);
                let flags = Some(READ_WRITE);
                (Values { pointer, size: mapped, object, offset, flags, ..within }, nothing)
            }
            Verb::Unmap => (Values { size: mapped, ..pointer }, nothing),
            Verb::Event => (Values { flags, device, ..within }, object),
            Verb::Wait => (Values { count: Some(1), ..object }, nothing),
            Verb::RetainPool
            | Verb::ReleasePool
            | Verb::RetainPhysical
            | Verb::ReleasePhysical
            | Verb::RetainEvent
            | Verb::ReleaseEvent => (object, nothing),
            // They leave no record.
            Verb::Graph | Verb::Write | Verb::Compare | Verb::Signal => (nothing, nothing),
        };
        (function, enter, exit)
    }
}

/// The thread of a process of this number, from 1 on.
fn tid_of(actor: usize, thread: u32) -> u32 {
    100 * (actor as u32 + 1) + thread - 1
}
