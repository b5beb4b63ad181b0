//! All handles of all processes: the one life machine that everything else reads.
//!
//! Records come in the order of time, those of one process in the order of its file. [`Tracker::enter`] and [`Tracker::exit`] take
//! the begin and the return of a call, [`Tracker::end`] the end of a process; each emits the [facts](fact) that follow from it.
//! Memory grows with what is alive, not with what has been.
//!
//! The tracker knows no rule and no consumer of its facts, and it never judges.

pub(crate) mod durations;
mod entering;
pub(crate) mod exports;
pub mod fact;
mod fact_kind;
mod freeing;
mod hash;
pub mod kept;
mod leaving;
mod mapped;
pub mod pending;
pub(crate) mod process_state;
mod ranges;
pub mod records;
mod repeats;
mod returning;
mod rights;
mod seldom;
mod shelves;
mod table;
mod tombstones;
mod transitions;
pub mod usual;
mod view;

pub use self::{
    exports::ExportId,
    rights::Rights,
    view::{Holder, Shared},
};
pub(crate) use self::{
    hash::{Map, Set},
    rights::Barrier,
};

use std::sync::Arc;

use urscope_schema::{
    api::demand::Nulls,
    call::{Enter, Nanos},
    handle::Kind,
};

use self::{
    exports::Exports,
    fact::{Descriptors, Fact, FactConsumer, Missing, What},
    pending::SparePlaces,
    process_state::{Inherited, ProcessState},
    records::{Device, Serial},
    repeats::Repeats,
    tombstones::Tombstones,
    usual::Begins,
};
use crate::finding::Place;

/// A process, numbered by the tracker in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// A process that is not in this tracker: the parent of a child whose parent was not traced, or what a process was itself before
    /// it was traced.
    pub const UNKNOWN: Self = Self(u32::MAX);
}

/// Who a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number on its host.
    pub pid: u32,
    /// When it started, in the kernel's ticks: distinguishes it from an earlier process of the same number.
    pub start: u64,
    /// Within equal keys, handles can be exchanged and clocks be compared: one boot of one host, one time namespace.
    pub host: u64,
    /// Its executable.
    pub executable: Arc<str>,
    /// Its rank under an MPI launcher.
    pub rank: Option<u32>,
    /// The process it is a forked copy of; [`ProcessId::UNKNOWN`] if it is a copy of one that was not traced, or was not traced from its
    /// beginning on.
    pub forked_from: Option<ProcessId>,
    /// When it was forked, at the latest; what its parent had ended by then is ended in it, too.
    pub forked_at: Option<Nanos>,
    /// What the kernel lets it do.
    pub rights: Arc<Rights>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// In order: what it left is left for good.
    Exited,
    /// It became another program (`exec`): what it left is left for good.
    Exec,
    /// In the middle of its work: it had no chance to clean up.
    Killed,
    /// Not at all: it still runs.
    Running,
    /// Unknown: its trace stopped, or calls are missing in it.
    Incomplete,
}

/// How many devices of a process are described.
const DEVICES: usize = 256;

/// How many names of adapters' libraries are kept once for all processes.
const LIBRARIES: usize = 64;

/// All handles of all processes.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    states: Vec<ProcessState>,
    exports: Exports,
    spare: SparePlaces,
    /// The first names of adapters' libraries, which most processes have in common.
    libraries: Vec<Arc<str>>,
    serial: Serial,
    ipc_calls: u64,
    /// A device has reported that it cannot share something.
    has_denied: bool,
    repeats: Repeats,
}

impl Tracker {
    /// A tracker that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many processes will begin. Otherwise the memory for them grows by doubling.
    pub fn reserve(&mut self, processes: usize) {
        self.states.reserve_exact(processes);
    }

    /// Frees the memory that is kept for what a process has none of now. It takes some anew when it has. A run of very many processes has
    /// no memory to keep for each; a live one does not call this.
    pub fn give_back(&mut self, who: ProcessId) {
        self.repeats.forget();
        self.state_mut(who).into_iter().for_each(ProcessState::give_back);
    }

    /// A process begins.
    pub fn begin(&mut self, process: Process) -> ProcessId {
        let forked_at = process.forked_at;
        let (inherited, tombstones) = match process.forked_from {
            None => (Inherited::Nothing, Tombstones::default()),
            Some(parent) => self
                .state(parent)
                .map_or((Inherited::Anything, Tombstones::default()), |parent| parent.bequest(forked_at)),
        };
        let id = ProcessId(self.states.len() as u32);
        self.states.push(ProcessState { tombstones, ..ProcessState::new(process, inherited) });
        id
    }

    /// A call begins. The facts that are emitted show the tracker as it was before; then the tracker moves.
    pub fn enter(&mut self, who: ProcessId, enter: &Enter, facts: &mut (impl FactConsumer + ?Sized)) {
        self.enter_with(who, enter, &enter.function.nulls(&enter.values), facts);
    }

    /// The same, where more is known of the arguments than their record shows.
    pub fn enter_with(
        &mut self,
        who: ProcessId,
        enter: &Enter,
        nulls: &Nulls,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        if nulls.is_empty()
            && let Some(begins) = Begins::of(enter)
            && self.enter_usual(who, &begins, facts)
        {
            return;
        }
        self.repeats.forget();
        self.facts_of_enter(who, enter, nulls, facts);
        if enter.is_ipc() {
            self.ipc_calls += 1;
            if let Some(state) = self.state_mut(who) {
                state.ipc_calls += 1;
            }
        }
        transitions::enter(self, who, enter);
    }

    /// So many descriptors are open in a process.
    pub fn descriptors(&mut self, who: ProcessId, open: u64, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(who) else { return };
        let (held, calls) = (state.held(), state.ipc_calls);
        self.emit(facts, end_of(who, at), What::Descriptors(Descriptors { open, held, calls }));
    }

    /// A process has an adapter, with a library of that file name.
    pub fn adapter(&mut self, who: ProcessId, library: &str) {
        let known = |names: &[Arc<str>]| names.iter().find(|known| known.as_ref() == library).cloned();
        let Some(state) = self.states.get_mut(who.0 as usize) else { return };
        if library.is_empty() || known(&state.adapters).is_some() {
            return;
        }
        let name = known(&self.libraries).unwrap_or_else(|| library.into());
        if self.libraries.len() < LIBRARIES && Arc::strong_count(&name) == 1 {
            self.libraries.push(Arc::clone(&name));
        }
        state.adapters.push(name);
    }

    /// A process has a device: its index among the devices of its platform, if it is one of these, and its name, which may be empty.
    pub fn device(&mut self, who: ProcessId, handle: u64, index: Option<u32>, name: &str) {
        if let Some(state) = self.state_mut(who)
            && (state.seldom.devices.len() < DEVICES || state.seldom.devices.contains(handle))
        {
            state.seldom.made().devices.insert(handle, Device { index, name: name.into() });
        }
    }

    /// Calls are missing of a process that is about to end as [`End::Incomplete`]: so many records were lost, and so many lines
    /// of its trace could not be used.
    pub fn missing(&mut self, who: ProcessId, lost: u64, lines: u64) {
        if let Some(state) = self.state_mut(who) {
            state.seldom.made().missing = Missing { lost, lines };
        }
    }

    /// A process ends, with its last record at `at`.
    ///
    /// From here on nothing is open in it, also when it still runs: what it did since its last record is not known.
    pub fn end(&mut self, who: ProcessId, how: End, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        self.repeats.forget();
        self.facts_of_end(who, how, at, facts);
        transitions::end(self, who, how, at);
    }

    /// Somebody outside saw a process running at `alive` for the last time, and at `gone` saw for the first time that it was not there
    /// any more. This decides until when a process that was killed held its mappings; it must be known when the process ends.
    pub fn observed(&mut self, who: ProcessId, alive: Nanos, gone: Nanos) {
        if let Some(state) = self.state_mut(who) {
            state.seldom.made().observed = Some((alive, gone));
        }
    }

    /// The run is over. Processes that have not ended are left as they are.
    pub fn finish(&self, facts: &mut (impl FactConsumer + ?Sized)) {
        self.emit(facts, end_of(ProcessId(0), Nanos(0)), What::Finished);
    }

    /// Who that is.
    pub fn process(&self, who: ProcessId) -> Option<&Process> {
        self.state(who).map(|state| &state.process)
    }

    /// How many processes have begun.
    pub fn processes(&self) -> usize {
        self.states.len()
    }

    /// The call that a process is inside of, the one that began last.
    pub fn inside(&self, who: ProcessId) -> Option<Place> {
        self.state(who)?.inside(who)
    }

    /// How many `urIPC*` calls have begun, in all processes.
    pub fn ipc_calls(&self) -> u64 {
        self.ipc_calls
    }

    /// Whether an export may be unknown by now, because so many others have ended since.
    pub fn has_forgotten(&self) -> bool {
        self.exports.have_forgotten()
    }

    /// Hands a fact to a consumer that wants it.
    #[expect(clippy::inline_always, reason = "what kind of fact it is is a constant of most callers")]
    #[inline(always)]
    fn emit(&self, facts: &mut (impl FactConsumer + ?Sized), at: Place, what: What<'_>) {
        if facts.wants(what.kind()) {
            facts.consume_of(what.kind(), &Fact { tracker: self, at, what });
        }
    }

    /// A size that gets have given of a kind of handle data, if none has given `size`: those of the process itself, which show the
    /// size of its adapter, or else all on its host.
    pub(crate) fn other_size(&self, who: ProcessId, kind: Kind, size: u64) -> Option<&exports::DataSize> {
        let host = self.process(who)?.host;
        let known = || self.exports.sizes(host, kind);
        let own = known().any(|given| given.got.process == who);
        let mut known = known().filter(|given| !own || given.got.process == who);
        let first = known.next()?;
        (first.size != size && known.all(|other| other.size != size)).then_some(first)
    }

    /// The latest export of memory that bytes on a process's host name, though they are not the bytes that its get returned.
    pub(crate) fn named_export(&self, who: ProcessId, named: Option<(u64, u64)>) -> Option<&exports::Export> {
        let (pid, address) = named?;
        let host = self.process(who)?.host;
        let is_named = |export: &&exports::Export| {
            let exporter = self.process(export.producer());
            export.host() == host
                && export.subject.value.get() == Some(address)
                && export.subject.kind == Kind::MemHandle
                && exporter.is_some_and(|exporter| u64::from(exporter.pid) == pid)
        };
        self.exports.iter().filter(is_named).max_by_key(|export| (export.got().time, export.got().call))
    }

    /// The process with that number on the host and in the pid namespace of another one, as far as that is known; the latest of several.
    pub(crate) fn process_with_pid(&self, who: ProcessId, pid: u64) -> Option<ProcessId> {
        let own = self.process(who)?;
        let namespace = own.rights.pid_namespace;
        let is_it = |state: &&ProcessState| {
            let Process { pid: its, host, rights, .. } = &state.process;
            let same = namespace.is_none() || rights.pid_namespace.is_none() || namespace == rights.pid_namespace;
            u64::from(*its) == pid && *host == own.host && same
        };
        let index = self.states.iter().rposition(|state| is_it(&state))?;
        Some(ProcessId(index as u32))
    }

    /// All exports, for rules.
    pub(crate) fn exports(&self) -> &Exports {
        &self.exports
    }

    /// All processes in the order in which they began, for rules.
    pub(crate) fn states(&self) -> &[ProcessState] {
        &self.states
    }

    /// What is alive in a process.
    pub(crate) fn state(&self, who: ProcessId) -> Option<&ProcessState> {
        self.states.get(who.0 as usize)
    }

    fn state_mut(&mut self, who: ProcessId) -> Option<&mut ProcessState> {
        self.states.get_mut(who.0 as usize)
    }

    /// The latest export of the bytes that a process holds.
    pub(crate) fn export_of(&self, who: ProcessId, fingerprint: Option<u64>) -> Option<ExportId> {
        self.exports.of_bytes(self.process(who)?.host, fingerprint?)
    }
}

/// A moment of a process that is in no call.
pub(crate) const fn end_of(process: ProcessId, time: Nanos) -> Place {
    Place { process, tid: 0, time, call: None, function: None, stack: None }
}
