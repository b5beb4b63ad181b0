//! All handles of all processes: the one tracker that every rule reads.
//!
//! Records come in the order of time, those of one process in the order of its file. [`Tracker::check`] looks,
//! [`Tracker::enter`] moves, [`Tracker::exit`] moves and lets the rules look at what became of it, [`Tracker::end`] asks what
//! was left. Memory grows with what lives, not with what has been.

pub(crate) mod devices;
pub(crate) mod exports;
pub(crate) mod fact;
mod finish;
mod hash;
mod leaving;
pub(crate) mod ledger;
pub(crate) mod pace;
mod process_state;
pub(crate) mod received;
pub(crate) mod records;
pub(crate) mod rights;
pub(crate) mod slabs;
mod transitions;
mod view;

pub use self::{
    exports::ExportId,
    rights::Rights,
    view::{Holder, Shared},
};

use urscope_schema::{
    api::{Effect, Function, demand::Nulls},
    call::{Enter, Exit, Nanos, Values},
    handle::{Handle, Kind},
};

use self::{
    exports::Exports,
    fact::{Confusion, Ending, Fact, Left, Missing, Opened, Target, Waiting, What},
    hash::Set,
    leaving::Leaving,
    ledger::Sample,
    process_state::{Inherited, Operation, ProcessState, place_of},
    received::Sizes,
    records::{Object, Origin, Serial},
    transitions::contexts::Leftovers,
};
use crate::{
    catalog::{self, When},
    finding::{Finding, Place},
    lifecycle::State,
};

/// A process, numbered by the tracker in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// A process that is not in this tracker, as the parent of a child whose parent was not traced.
    pub const UNKNOWN: Self = Self(u32::MAX);
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number on its host.
    pub pid: u32,
    /// When it started, in the kernel's ticks: tells it apart from an earlier process of the same number.
    pub start: u64,
    /// Within equal keys, handles can be exchanged and clocks be compared: one boot of one host, one time namespace.
    pub host: u64,
    /// Its executable.
    pub executable: String,
    /// The process it is a forked copy of; [`ProcessId::UNKNOWN`] if it is a copy of one that was not traced.
    pub forked_from: Option<ProcessId>,
    /// What the kernel lets it do.
    pub rights: Rights,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In order: what it left is left for good.
    Exited,
    /// In the middle of its work: it had no chance to tidy up.
    Killed,
    /// Not at all: it still runs.
    Running,
    /// Unknown: its trace stopped, or calls are missing in it.
    Incomplete,
}

/// All handles of all processes.
#[derive(Debug, Default)]
pub struct Tracker {
    lives: Vec<ProcessState>,
    exports: Exports,
    sizes: Sizes,
    serial: Serial,
    ipc_calls: u64,
    /// The hosts on which handle data was opened that nobody has been seen to get.
    strangers: Set<u64>,
    /// The hosts on which a process tried to open what another one had exported.
    exchanging: Set<u64>,
    /// The waits of processes that have ended that were never answered.
    waits: Vec<Waiting>,
    /// Calls are missing in some process.
    has_gaps: bool,
}

impl Tracker {
    /// An empty tracker.
    pub fn new() -> Self {
        Self::default()
    }

    /// A process begins.
    pub fn begin(&mut self, process: Process) -> ProcessId {
        let inherited = match process.forked_from {
            None => Inherited::Nothing,
            Some(parent) => self.life(parent).map_or(Inherited::Anything, ProcessState::bequest),
        };
        let id = ProcessId(self.lives.len() as u32);
        self.lives.push(ProcessState::new(process, inherited));
        id
    }

    /// Who that is.
    pub fn process(&self, who: ProcessId) -> Option<&Process> {
        self.life(who).map(|life| &life.process)
    }

    /// The call that a process is inside of, the one that began last.
    pub fn inside(&self, who: ProcessId) -> Option<Place> {
        self.life(who)?.inside()
    }

    /// How many `urIPC*` calls have begun, in all processes.
    pub fn ipc_calls(&self) -> u64 {
        self.ipc_calls
    }

    /// Looks at a call before it is passed on; moves nothing.
    pub fn check(&self, who: ProcessId, enter: &Enter, found: &mut Vec<Finding>) {
        self.check_call(who, enter, &enter.function.nulls(&enter.values), found);
    }

    /// The same, where more is known of the arguments than their record shows.
    pub fn check_call(&self, who: ProcessId, enter: &Enter, nulls: &Nulls, found: &mut Vec<Finding>) {
        if let Some(fault) = nulls.fault(enter.function, &enter.values) {
            self.report(When::Enter, place_of(who, enter), What::Argument(fault), found);
        }
        let Some(life) = self.life(who) else { return };
        let values = &enter.values;
        let (kind, value) = match enter.function.effect() {
            Effect::Ends(kind) if kind.shares().is_some() => (kind, values.data),
            Effect::Ends(kind) => (kind, values.pointer),
            // References to events are also held by commands, which are not recorded.
            Effect::Releases(Kind::PhysicalMem) => (Kind::PhysicalMem, values.object),
            Effect::Makes(made) => {
                if let Some(what) = self.making(who, life, enter, made) {
                    self.report(When::Enter, place_of(who, enter), what, found);
                }
                return;
            }
            _ => return,
        };
        // Null is no object: it is what is left of a get or open that failed under an adapter that says success.
        let Some(value) = value.filter(|value| *value != 0) else { return };
        let object = Handle { kind, value };
        let (state, target) = (life.state(object), life.target(kind, value));
        match target {
            Target::Handle(got) if got.state == State::Alive => {
                if kind == Kind::PhysicalMemHandle
                    && let Some(closed) = got.export.and_then(|id| self.exports.closed(id, got.serial))
                {
                    let what = What::ClosedAlready { handle: object, got, closed };
                    self.report(When::Enter, place_of(who, enter), what, found);
                }
                return;
            }
            // What was made here is released, not closed.
            Target::Object(object)
                if object.state == State::Alive && (!enter.function.is_ipc() || object.origin == Origin::Imported) =>
            {
                return;
            }
            Target::Allocation(_) if kind == Kind::Usm => return,
            Target::Nothing if state == State::Inherited => return,
            // An address belongs to what was born there last.
            Target::Nothing | Target::Ended(_) => {
                if let Some((is, born)) = life.of_another_kind(kind, value) {
                    let confusion = Confusion { taken_for: kind, is, born, fingerprint: None };
                    self.report(When::Enter, place_of(who, enter), What::OtherKind(confusion), found);
                    return;
                }
                if kind == Kind::Usm {
                    return;
                }
            }
            _ => {}
        }
        let ending = Ending { object, context: values.context, state, target };
        self.report(When::Enter, place_of(who, enter), What::Ending(ending), found);
    }

    /// What there is to see of a call that is to make an object: what it gets handle data of, or what it opens.
    fn making<'w>(&'w self, who: ProcessId, life: &'w ProcessState, enter: &Enter, made: Kind) -> Option<What<'w>> {
        let values = &enter.values;
        if let Some(taken_for) = opens(enter.function) {
            let found = self.exports.get(self.export_of(who, values.fingerprint)?)?;
            let is = Handle { kind: found.subject.kind, value: values.data.unwrap_or_default() };
            let confusion = Confusion { taken_for, is, born: found.got, fingerprint: values.fingerprint };
            return (is.kind != taken_for).then_some(What::OtherKind(confusion));
        }
        let kind = made.shares()?;
        let value = if kind == Kind::Usm { values.pointer? } else { values.object? };
        let object = Handle { kind, value };
        if let Some(known) = life.objects.get(&object) {
            return Some(What::Exporting(object, known));
        }
        if kind == Kind::Usm
            && life.allocation_at(value).is_none()
            && let Some((base, mapped)) = life.mapping_at(value)
        {
            return Some(What::ExportingMapped(base, mapped));
        }
        let (is, born) = life.of_another_kind(kind, value)?;
        Some(What::OtherKind(Confusion { taken_for: kind, is, born, fingerprint: None }))
    }

    /// The latest export of the bytes that a process holds.
    fn export_of(&self, who: ProcessId, fingerprint: Option<u64>) -> Option<ExportId> {
        self.exports.of_bytes(self.process(who)?.host, fingerprint?)
    }

    /// A call begins: moves, says nothing.
    pub fn enter(&mut self, who: ProcessId, enter: &Enter) {
        if enter.function.is_ipc() {
            self.ipc_calls += 1;
            if let Some(life) = self.life_mut(who) {
                life.ipc_calls += 1;
            }
        }
        transitions::enter(self, who, enter);
    }

    /// A call returns.
    pub fn exit(&mut self, who: ProcessId, exit: &Exit, found: &mut Vec<Finding>) {
        if let Effect::Makes(kind) = exit.function.effect()
            && let Some(pending) = self.life(who).and_then(|life| life.pending.get(&exit.call))
        {
            let well = exit.result.is_success() && is_answered(kind, &exit.values);
            if exit.result.is_success() && !well {
                self.report(When::Exit, pending.place, What::Unanswered(kind), found);
            }
            let opened = if well { Opened::Well } else { Opened::Not(exit.result) };
            if let Operation::Open { stale: Some(stale), .. } = &pending.operation {
                self.report(When::Exit, pending.place, What::Stale(stale, opened), found);
            }
            if let Some(wrong_device) = &pending.wrong_device {
                self.report(When::Exit, pending.place, What::WrongDevice(wrong_device, opened), found);
            }
            self.look_at_outcome(pending, exit, opened, found);
            self.receive(who, exit, opened);
        }
        let Some(outcome) = transitions::exit(self, who, exit) else { return };
        match outcome {
            transitions::Outcome::Freed(place, freed) => self.report(When::Exit, place, What::Freed(&freed), found),
            transitions::Outcome::Dangling(place, dangling, how) => {
                self.report(When::Exit, place, What::Dangling(&dangling, how), found);
            }
            transitions::Outcome::Released(place, leftovers) => {
                let Leftovers { handles, mappings, objects } = &*leftovers;
                let leaving = Leaving { tracker: self, place, left: Left::ContextReleased };
                leaving.handles(handles.iter().map(|(handle, got)| (*handle, got)), found);
                leaving.mappings(mappings.iter().map(|(pointer, mapped)| (*pointer, mapped)), found);
                leaving.objects(objects.iter().map(|(handle, object)| (*handle, object)), found);
            }
        }
    }

    /// A process ends, with its last record at `at`.
    ///
    /// From here on nothing is open in it, also when it still runs: what it did since its last record is not known.
    pub fn end(&mut self, who: ProcessId, how: End, at: Nanos, found: &mut Vec<Finding>) {
        self.look_at_end(who, how, at, found);
        if how == End::Incomplete
            && let Some(life) = self.life(who).filter(|life| life.ended.is_none())
        {
            let at = Place { process: who, tid: 0, time: at, call: None, function: None, stack: None };
            self.report(When::Run, at, What::Missing(life.missing), found);
            self.has_gaps = true;
        }
        transitions::bury(self, who, how, at);
    }

    /// What a process would leave if it ended like that now; moves nothing, and allocates nothing where nothing is left.
    pub fn look_at_end(&self, who: ProcessId, how: End, at: Nanos, found: &mut Vec<Finding>) {
        let Some(life) = self.life(who).filter(|life| life.ended.is_none()) else { return };
        self.look_at_habits(who, life, at, found);
        let left = match how {
            End::Exited => Some(Left::Exited),
            End::Killed => Some(Left::Killed),
            End::Incomplete => Some(Left::Incomplete),
            End::Running => None,
        };
        if let Some(left) = left {
            let place = Place { process: who, tid: 0, time: at, call: None, function: None, stack: None };
            let leaving = Leaving { tracker: self, place, left };
            leaving.memory(life, found);
            let handles = life.handles.iter().map(|(handle, got)| (*handle, got));
            leaving.handles(
                handles
                    .filter(|(_, got)| got.state == State::Alive && !got.accused)
                    .filter(|(handle, got)| life.must_put(*handle, got)),
                found,
            );
            let mappings = life.mappings.iter().map(|(pointer, mapped)| (*pointer, mapped));
            leaving.mappings(mappings.filter(|(_, mapped)| mapped.state == State::Alive && !mapped.accused), found);
            let objects = life.objects.iter().map(|(handle, object)| (*handle, object));
            let opened = |object: &Object| object.origin == Origin::Imported && object.state == State::Alive;
            leaving.objects(objects.filter(|(_, object)| opened(object) && !object.accused), found);
        }
    }

    /// What a process did over and over.
    fn look_at_habits(&self, who: ProcessId, life: &ProcessState, at: Nanos, found: &mut Vec<Finding>) {
        for export in life.churned.iter().filter_map(|id| self.exports.get(*id)) {
            self.report(When::End, export.got, What::Churned(export), found);
        }
        for outlier in life.pace.outliers() {
            self.report(When::End, outlier.place, What::Outlier(outlier), found);
        }
        if let Some(growth) = life.ledger.growth(life.process.rights.descriptors) {
            let at = Place { process: who, tid: 0, time: at, call: None, function: None, stack: None };
            self.report(When::Run, at, What::Growth(growth), found);
        }
    }

    /// So many descriptors are open in a process.
    pub fn descriptors(&mut self, who: ProcessId, descriptors: u64, at: Nanos) {
        let Some(life) = self.life_mut(who) else { return };
        let (calls, held) = (life.ipc_calls, life.held());
        life.ledger.add(Sample { at, calls, descriptors, held });
    }

    /// Calls are missing of a process that is about to end as [`End::Incomplete`]: so many records were lost, and so many lines
    /// of its trace could not be used.
    pub fn missing(&mut self, who: ProcessId, lost: u64, lines: u64) {
        if let Some(life) = self.life_mut(who) {
            life.missing = Missing { lost, lines };
        }
    }

    fn report(&self, when: When, at: Place, what: What<'_>, found: &mut Vec<Finding>) {
        catalog::check(when, &Fact { tracker: self, at, what }, found);
    }

    fn life(&self, who: ProcessId) -> Option<&ProcessState> {
        self.lives.get(who.0 as usize)
    }

    fn life_mut(&mut self, who: ProcessId) -> Option<&mut ProcessState> {
        self.lives.get_mut(who.0 as usize)
    }
}

/// Whether a success has made what it should have made. A get that is only asked for the size answers with that.
fn is_answered(kind: Kind, values: &Values) -> bool {
    let made = match kind {
        Kind::Usm | Kind::Mapping => values.pointer,
        Kind::Context => values.context,
        Kind::PhysicalMem | Kind::Event => values.object,
        _ if values.data.is_none() => values.data_size,
        _ => values.data,
    };
    made.is_some_and(|made| made != 0)
}

/// The kind of the handle data that a function opens; nothing if it opens none.
fn opens(function: Function) -> Option<Kind> {
    match function.effect() {
        Effect::Makes(Kind::Mapping) => Some(Kind::MemHandle),
        Effect::Makes(Kind::PhysicalMem) if function.is_ipc() => Some(Kind::PhysicalMemHandle),
        Effect::Makes(Kind::Event) if function.is_ipc() => Some(Kind::EventHandle),
        _ => None,
    }
}
