//! All handles of all processes: the one tracker that every rule reads.
//!
//! Records come in the order of time, those of one process in the order of its file. [`World::check`] looks,
//! [`World::enter`] moves, [`World::exit`] moves and lets the rules look at what became of it, [`World::end`] asks what
//! was left. Memory grows with what lives, not with what has been.

pub(crate) mod devices;
pub(crate) mod exports;
mod finish;
mod hash;
mod leaving;
pub(crate) mod ledger;
mod moves;
pub(crate) mod pace;
mod process;
pub(crate) mod received;
pub(crate) mod records;
pub(crate) mod rights;
pub(crate) mod scene;
pub(crate) mod slabs;
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
    hash::Set,
    leaving::Leaving,
    ledger::Sample,
    moves::contexts::Remains,
    process::{Aim, Inherited, Life, place_of},
    received::Sizes,
    records::{Object, Origin, Serial},
    scene::{Confusion, Ending, Left, Missing, Opened, Scene, Sight, Target, Waiting},
};
use crate::{
    catalog::{self, When},
    finding::{Finding, Place},
    life::State,
};

/// A process, numbered by the world in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// A process that is not in this world, as the parent of a child whose parent was not traced.
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
pub struct World {
    lives: Vec<Life>,
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

impl World {
    /// An empty world.
    pub fn new() -> Self {
        Self::default()
    }

    /// A process begins.
    pub fn begin(&mut self, process: Process) -> ProcessId {
        let inherited = match process.forked_from {
            None => Inherited::Nothing,
            Some(parent) => self.life(parent).map_or(Inherited::Anything, Life::bequest),
        };
        let id = ProcessId(self.lives.len() as u32);
        self.lives.push(Life::new(process, inherited));
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
            self.look(When::Enter, place_of(who, enter), Sight::Argument(fault), found);
        }
        let Some(life) = self.life(who) else { return };
        let values = &enter.values;
        let (kind, value) = match enter.function.effect() {
            Effect::Ends(kind) if kind.shares().is_some() => (kind, values.data),
            Effect::Ends(kind) => (kind, values.pointer),
            // References to events are also held by commands, which are not recorded.
            Effect::Releases(Kind::PhysicalMem) => (Kind::PhysicalMem, values.object),
            Effect::Makes(made) => {
                if let Some(sight) = self.making(who, life, enter, made) {
                    self.look(When::Enter, place_of(who, enter), sight, found);
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
                    let sight = Sight::ClosedAlready { handle: object, got, closed };
                    self.look(When::Enter, place_of(who, enter), sight, found);
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
            Target::Nothing | Target::Buried(_) => {
                if let Some((is, born)) = life.of_another_kind(kind, value) {
                    let confusion = Confusion { taken_for: kind, is, born, fingerprint: None };
                    self.look(When::Enter, place_of(who, enter), Sight::OtherKind(confusion), found);
                    return;
                }
                if kind == Kind::Usm {
                    return;
                }
            }
            _ => {}
        }
        let ending = Ending { object, context: values.context, state, target };
        self.look(When::Enter, place_of(who, enter), Sight::Ending(ending), found);
    }

    /// What there is to see of a call that is to make an object: what it gets handle data of, or what it opens.
    fn making<'w>(&'w self, who: ProcessId, life: &'w Life, enter: &Enter, made: Kind) -> Option<Sight<'w>> {
        let values = &enter.values;
        if let Some(taken_for) = opens(enter.function) {
            let found = self.exports.get(self.export_of(who, values.fingerprint)?)?;
            let is = Handle { kind: found.subject.kind, value: values.data.unwrap_or_default() };
            let confusion = Confusion { taken_for, is, born: found.got, fingerprint: values.fingerprint };
            return (is.kind != taken_for).then_some(Sight::OtherKind(confusion));
        }
        let kind = made.shares()?;
        let value = if kind == Kind::Usm { values.pointer? } else { values.object? };
        let object = Handle { kind, value };
        if let Some(known) = life.objects.get(&object) {
            return Some(Sight::Exporting(object, known));
        }
        if kind == Kind::Usm
            && life.allocation_at(value).is_none()
            && let Some((base, mapped)) = life.mapping_at(value)
        {
            return Some(Sight::ExportingMapped(base, mapped));
        }
        let (is, born) = life.of_another_kind(kind, value)?;
        Some(Sight::OtherKind(Confusion { taken_for: kind, is, born, fingerprint: None }))
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
        moves::enter(self, who, enter);
    }

    /// A call returns.
    pub fn exit(&mut self, who: ProcessId, exit: &Exit, found: &mut Vec<Finding>) {
        if let Effect::Makes(kind) = exit.function.effect()
            && let Some(pending) = self.life(who).and_then(|life| life.pending.get(&exit.call))
        {
            let well = exit.result.is_success() && is_answered(kind, &exit.values);
            if exit.result.is_success() && !well {
                self.look(When::Exit, pending.place, Sight::Unanswered(kind), found);
            }
            let opened = if well { Opened::Well } else { Opened::Not(exit.result) };
            if let Aim::Open { stale: Some(stale), .. } = &pending.aim {
                self.look(When::Exit, pending.place, Sight::Stale(stale, opened), found);
            }
            if let Some(abroad) = &pending.abroad {
                self.look(When::Exit, pending.place, Sight::Abroad(abroad, opened), found);
            }
            self.look_at_outcome(pending, exit, opened, found);
            self.receive(who, exit, opened);
        }
        let Some(outcome) = moves::exit(self, who, exit) else { return };
        match outcome {
            moves::Outcome::Freed(place, freed) => self.look(When::Exit, place, Sight::Freed(&freed), found),
            moves::Outcome::Astray(place, stray, how) => {
                self.look(When::Exit, place, Sight::Astray(&stray, how), found);
            }
            moves::Outcome::Released(place, remains) => {
                let Remains { handles, mappings, objects } = &*remains;
                let leaving = Leaving { world: self, place, left: Left::ContextReleased };
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
            self.look(When::Run, at, Sight::Missing(life.missing), found);
            self.has_gaps = true;
        }
        moves::bury(self, who, how, at);
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
            let leaving = Leaving { world: self, place, left };
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
    fn look_at_habits(&self, who: ProcessId, life: &Life, at: Nanos, found: &mut Vec<Finding>) {
        for export in life.churned.iter().filter_map(|id| self.exports.get(*id)) {
            self.look(When::End, export.got, Sight::Churned(export), found);
        }
        for outlier in life.pace.outliers() {
            self.look(When::End, outlier.place, Sight::Outlier(outlier), found);
        }
        if let Some(growth) = life.ledger.growth(life.process.rights.descriptors) {
            let at = Place { process: who, tid: 0, time: at, call: None, function: None, stack: None };
            self.look(When::Run, at, Sight::Growth(growth), found);
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

    fn look(&self, when: When, at: Place, sight: Sight<'_>, found: &mut Vec<Finding>) {
        catalog::look(when, &Scene { world: self, at, sight }, found);
    }

    fn life(&self, who: ProcessId) -> Option<&Life> {
        self.lives.get(who.0 as usize)
    }

    fn life_mut(&mut self, who: ProcessId) -> Option<&mut Life> {
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
