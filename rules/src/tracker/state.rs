//! The state of the tracker: the processes, and what they have exported.

use urscope_schema::call::Nanos;
use urscope_schema::handle::{Handle, Kind, changed_bytes};
use urscope_schema::operation::Open;

use super::exports::{Export, Exports};
use super::in_flight::NotJudged;
use super::maps::Map;
use super::observations::Altered;
use super::process::{Missing, Process};
use super::process_state::{DataSize, Inherited, ProcessState};
use super::records::{Device, DeviceError, ExportId, Serial};
use super::tombstones::Tombstones;
use crate::place::{Place, ProcessId};

/// All handles of all processes.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    pub(crate) states: Vec<ProcessState>,
    /// By host.
    pub(super) not_judged: Map<u64, NotJudged>,
    /// When the hosts of commands knew that they had completed.
    pub(super) over: Map<Place, Nanos>,
    /// The hosts on which not all commands of a process are known any more.
    pub(super) limited: Vec<u64>,
    pub(crate) exports: Exports,
    pub(super) ipc_calls: u64,
    serial: Serial,
}

/// How many devices of a process are described.
const MAX_DEVICES: usize = 256;

impl Tracker {
    /// A tracker without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A process begins.
    pub fn begin(&mut self, process: Process) -> ProcessId {
        let started = process.started;
        let (inherited, tombstones) = match process.forked_from {
            None => (Inherited::Nothing, Tombstones::default()),
            Some(parent) => self
                .state(parent)
                .map_or((Inherited::Anything, Tombstones::default()), |parent| parent.inherited_by_child(started)),
        };
        let id = ProcessId(self.states.len() as u32);
        self.states.push(ProcessState::new(process, inherited, tombstones));
        id
    }

    /// A process has an adapter, with a library of that file name.
    pub fn adapter(&mut self, who: ProcessId, library: &str) {
        if let Some(state) = self.state_mut(who)
            && !library.is_empty()
            && !state.adapters.iter().any(|known| **known == *library)
        {
            state.adapters.reserve_exact(1);
            state.adapters.push(library.into());
        }
    }

    /// A process has a device: its handle, and the one in the interface below its adapter, its index among the devices
    /// of its platform, if it is one of these, and its name, which may be empty.
    pub fn device(&mut self, who: ProcessId, handle: u64, native: Option<u64>, index: Option<u32>, name: &str) {
        let Some(state) = self.state_mut(who) else { return };
        for handle in [Some(handle), native].into_iter().flatten() {
            if state.devices.len() < MAX_DEVICES || state.devices.contains_key(&handle) {
                state.devices.insert(handle, Device { index, name: name.into(), native });
            }
        }
    }

    /// Calls are missing of a process that is about to end as [`End::Incomplete`](super::End::Incomplete):
    /// so many records were lost, and so many lines of its trace could not be used.
    pub fn missing(&mut self, who: ProcessId, lost: u64, lines: u64) {
        if let Some(state) = self.state_mut(who) {
            state.missing = Missing { lost, lines };
        }
    }

    /// A process that is about to end still has the descriptor with this number, as its latest get returned it.
    pub fn keeps(&mut self, who: ProcessId, descriptor: u32) {
        if let Some(kept) = self.state_mut(who).and_then(|state| state.descriptors.get_mut(&descriptor)) {
            kept.is_kept = true;
        }
    }

    /// An observer saw a process running for the last time at `alive`, and saw for the first time at `gone` that it had
    /// ended. A killed process held its mappings until between the two. This must be known when the process ends.
    pub fn observed(&mut self, who: ProcessId, alive: Nanos, gone: Nanos) {
        if let Some(state) = self.state_mut(who) {
            state.observed = Some((alive, gone));
        }
    }

    /// The identity of a process.
    pub fn process(&self, who: ProcessId) -> Option<&Process> {
        self.state(who).map(|state| &state.process)
    }

    /// How many processes have begun.
    pub fn processes(&self) -> usize {
        self.states.len()
    }

    /// The pending call of a process that began last.
    pub fn inside(&self, who: ProcessId) -> Option<Place> {
        self.state(who)?.inside()
    }

    /// How many exports of processes of a host no process has tried to open.
    pub fn unopened(&self, host: u64) -> u64 {
        self.exports.iter().filter(|export| export.host() == host && !export.tried).count() as u64
    }

    /// The first call of a process that has reported the failure of a device.
    pub fn device_error(&self, who: ProcessId) -> Option<&DeviceError> {
        self.state(who)?.device_error.as_ref()
    }

    /// How many `urIPC*` calls have begun, in all processes.
    pub fn ipc_calls(&self) -> u64 {
        self.ipc_calls
    }

    /// Whether exports have been forgotten, because too many others have ended since.
    pub fn has_forgotten(&self) -> bool {
        self.exports.has_forgotten
    }

    /// A size of a kind of handle data that gets have returned, if none has returned `size`: gets of the
    /// process itself, which show the size of its adapter, or else all gets on its host. With it, the first
    /// get that returned it.
    pub(crate) fn other_size(&self, who: ProcessId, kind: Kind, size: u64) -> Option<&DataSize> {
        let host = self.process(who)?.host;
        let of_kind = |given: &&DataSize| given.kind == kind;
        let mut all: Vec<&DataSize> = self.state(who)?.data_sizes.iter().filter(of_kind).collect();
        if all.is_empty() {
            let on_host = self.states.iter().filter(|other| other.process.host == host);
            all = on_host.flat_map(|other| &other.data_sizes).filter(of_kind).collect();
        }
        if all.iter().any(|given| given.size == size) {
            return None;
        }
        all.into_iter().min_by_key(|given| (given.got.time, given.got.process))
    }

    /// The latest export of the memory that bytes name on a process's host, although its get returned other bytes.
    pub(crate) fn named_export(&self, who: ProcessId, named: Option<(u64, u64)>) -> Option<&Export> {
        let (pid, address) = named?;
        let host = self.process(who)?.host;
        let is_named = |export: &&Export| {
            let exporter = self.process(export.producer);
            export.host() == host
                && export.subject.value == Some(address)
                && export.subject.kind == Kind::MemHandle
                && exporter.is_some_and(|exporter| u64::from(exporter.pid) == pid)
        };
        self.exports.iter().filter(is_named).max_by_key(|export| (export.latest_get.time, export.latest_get.call))
    }

    /// The processes on the host of one.
    pub(crate) fn on_host_of(&self, who: ProcessId) -> Vec<ProcessId> {
        let Some(host) = self.process(who).map(|process| process.host) else { return Vec::new() };
        (0..)
            .map(ProcessId)
            .zip(&self.states)
            .filter(|(_, state)| state.process.host == host)
            .map(|(who, _)| who)
            .collect()
    }

    /// The handle data of a kind that unknown bytes were before a few of them were changed. If the bytes name it, that
    /// is a number in them, otherwise one byte.
    pub(super) fn altered(&self, who: ProcessId, open: &Open) -> Option<Altered> {
        let size = open.size?;
        let checksum = open.checksum?;
        let host = self.process(who)?.host;
        let change = |export: &Export| {
            let (original, got) = export.subject.data?;
            let is_like = export.host() == host && export.subject.kind == open.of && original == size;
            is_like.then(|| changed_bytes(usize::try_from(size).ok()?, got, checksum)).flatten()
        };
        let named = self.named_export(who, open.named).and_then(|export| Some((export, change(export)?)));
        let others = self.exports.iter().filter_map(|export| Some((export, change(export)?)));
        let of_one_byte = others.filter(|(_, bytes)| bytes.len() == 1);
        let latest = of_one_byte.max_by_key(|(export, _)| (export.latest_get.time, export.latest_get.call));
        let (export, bytes) = latest.or(named.filter(|(_, bytes)| bytes.len() <= size_of::<u32>()))?;
        Some(Altered { got: export.latest_get, value: export.subject.value, first: bytes.start, length: bytes.len() })
    }

    /// The process with that number on the host and in the pid namespace of another one, as far as that is
    /// known; the latest of several.
    pub(crate) fn process_with_pid(&self, who: ProcessId, pid: u64) -> Option<ProcessId> {
        let own = self.process(who)?;
        let is_it = |state: &&ProcessState| {
            let Process { pid: its, host, rights, .. } = &state.process;
            u64::from(*its) == pid && *host == own.host && !rights.is_elsewhere(&own.rights)
        };
        let index = self.states.iter().rposition(|state| is_it(&state))?;
        Some(ProcessId(index as u32))
    }

    /// The state of a process.
    pub(crate) fn state(&self, who: ProcessId) -> Option<&ProcessState> {
        self.states.get(who.0 as usize)
    }

    pub(super) fn state_mut(&mut self, who: ProcessId) -> Option<&mut ProcessState> {
        self.states.get_mut(who.0 as usize)
    }

    /// The latest export of the bytes that a process holds.
    pub(crate) fn export_of(&self, who: ProcessId, fingerprint: Option<u64>) -> Option<ExportId> {
        self.exports.of_bytes(self.process(who)?.host, fingerprint?)
    }

    /// An object that is alive in a process.
    pub(super) fn object_mut(&mut self, who: ProcessId, object: Handle) -> Option<&mut super::records::Object> {
        self.state_mut(who)?.objects.get_mut(&object)
    }

    pub(super) fn next_serial(&mut self) -> Serial {
        self.serial += 1;
        self.serial
    }
}
