//! What is shared now, for displays: a view of the tracker, without checks.

use std::collections::BTreeMap;

use urscope_schema::api::{Effect, Function, Promise};
use urscope_schema::call::Values;
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::Operation;

use super::exports::{Export, Subject};
use super::records::{ExportId, Origin};
use super::{pending::PendingChange, process_state::ProcessState, state::Tracker};
use crate::lifecycle::State;
use crate::place::{Place, ProcessId};

/// Exported memory or an exported event, with the processes that have it open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The export.
    pub id: ExportId,
    /// The kind of its handle data.
    pub kind: Kind,
    /// The fingerprint of its handle data.
    pub fingerprint: u64,
    /// The process that exported it.
    pub producer: ProcessId,
    /// What was exported: an address of memory, or an object.
    pub value: Option<u64>,
    /// The size in bytes that an open maps.
    pub size: Option<u64>,
    /// The latest get.
    pub got: Place,
    /// How many of its handles are not put.
    pub handles: u64,
    /// The processes that have it open, in order.
    pub holders: Vec<Holder>,
    /// Of an event: the calls that wait for it now.
    pub waits: Vec<Place>,
}

/// A process that has it open at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// The mapping or the object.
    pub opened: Handle,
    /// The number of its opens that are not closed.
    pub opens: u64,
    /// The first of these.
    pub since: Place,
}

impl Tracker {
    /// Whether a process has a mapping open at this address.
    pub fn has_open(&self, who: ProcessId, pointer: u64) -> bool {
        self.state(who).and_then(|state| state.mappings.get(pointer)).is_some_and(|mapping| !mapping.opens.is_empty())
    }

    /// Everything that has handles that are not put, or is open or waited for, in the order of the gets.
    pub fn shared(&self) -> Vec<Shared> {
        let mut shared = BTreeMap::new();
        for (who, state) in (0..).map(ProcessId).zip(&self.states) {
            let handles = state.handles.values().filter(|data| data.state == State::Alive);
            let out = handles.filter_map(|data| data.export).filter(|id| !self.is_over(*id)).map(|id| (id, None));
            for (id, holder) in out.chain(self.holdings(who, state).map(|(id, holder)| (id, Some(holder)))) {
                let Some(export) = self.exports.get(id) else { continue };
                let known: &mut Shared = shared.entry(id).or_insert_with(|| self.as_shared(id, export));
                known.holders.extend(holder);
            }
            for (id, wait) in waits(state) {
                let Some(export) = self.exports.get(id) else { continue };
                shared.entry(id).or_insert_with(|| self.as_shared(id, export)).waits.push(wait);
            }
        }
        shared.into_values().collect()
    }

    /// An export without its holders; `None` if it is forgotten.
    pub fn export(&self, id: ExportId) -> Option<Shared> {
        self.exports.get(id).map(|export| self.as_shared(id, export))
    }

    /// Whether its handle data needs no put, and what was exported has ended in its process.
    fn is_over(&self, id: ExportId) -> bool {
        let has_ended = |export: &Export| {
            let Subject { value, serial: Some(serial), .. } = export.subject else {
                return self.exports.freed(id).is_some();
            };
            let lives = |state: &ProcessState, value| {
                let object = state.objects.get(&Handle { kind: Kind::PhysicalMem, value });
                let allocation = state.allocation_at(value);
                object.is_some_and(|it| it.serial == serial) || allocation.is_some_and(|(_, it)| it.serial == serial)
            };
            let is_memory = export.subject.kind == Kind::MemHandle;
            let state = self.state(export.latest_get.process).zip(value).filter(|_| is_memory);
            state.is_some_and(|(state, value)| !lives(state, value)) || self.exports.freed(id).is_some()
        };
        let is_optional = |export: &Export| export.latest_get.promises(Promise::PutIsOptional);
        self.exports.get(id).is_some_and(|export| is_optional(export) && has_ended(export))
    }

    fn as_shared(&self, id: ExportId, export: &Export) -> Shared {
        Shared {
            id,
            kind: export.subject.kind,
            fingerprint: export.fingerprint(),
            producer: export.latest_get.process,
            value: export.subject.value,
            size: export.subject.size,
            got: export.latest_get,
            handles: if self.is_over(id) { 0 } else { export.handles },
            holders: Vec::new(),
            waits: Vec::new(),
        }
    }

    /// The call that allocated the memory that a process exports from an address.
    pub fn born(&self, who: ProcessId, value: u64) -> Option<Place> {
        self.state(who)?.allocation_at(value)?.1.born
    }

    /// Whether an object is in use in a process.
    pub fn lives(&self, who: ProcessId, object: Handle) -> bool {
        self.state(who).is_some_and(|state| state.state(object) == State::Alive)
    }

    /// Passes on every export that a call concerns: before the transition for a call that begins, and after
    /// it for one that has returned.
    pub fn about(&self, who: ProcessId, function: Function, values: &Values, mut each: impl FnMut(ExportId)) {
        let Some(state) = self.state(who) else { return };
        let object = |kind| values.object.and_then(|value| state.objects.get(&Handle { kind, value }));
        match function.effect() {
            Effect::Exports(kind) | Effect::MayExport(kind) | Effect::Puts(kind) => {
                let handle = kind.handle_data().zip(values.data).map(|(kind, value)| Handle { kind, value });
                let got = handle.and_then(|handle| state.handles.get(&handle));
                got.and_then(|data| data.export).into_iter().for_each(each);
            }
            _ if values.fingerprint.is_some() && (function.effect().opens().is_some() || function.imports(values)) => {
                let fingerprint = match Operation::from_call(function, values) {
                    Operation::Open(open) => self.resolved(who, &open).fingerprint,
                    _ => values.fingerprint,
                };
                self.export_of(who, fingerprint).into_iter().for_each(each);
            }
            Effect::Frees(_) | Effect::FreesLater(_) if !values.pointer.is_some_and(|it| state.is_imported(it)) => {
                let memory = values.pointer.and_then(|pointer| state.allocations.get(pointer));
                memory.into_iter().flat_map(|memory| &memory.exports).copied().for_each(each);
            }
            Effect::Frees(_) | Effect::FreesLater(_) | Effect::Opens(Kind::Usm) | Effect::Closes(Kind::Usm) => {
                let mapping = values.pointer.and_then(|pointer| {
                    let around = || state.mapping_around(pointer).map(|(_, mapping)| mapping);
                    state.mappings.get(pointer).or_else(around)
                });
                mapping.and_then(|mapping| mapping.export).into_iter().for_each(each);
            }
            Effect::Creates(kind)
            | Effect::Opens(kind)
            | Effect::Releases(kind)
            | Effect::Destroys(kind)
            | Effect::Closes(kind)
                if let Some(object) = object(kind) =>
            {
                if object.origin == Origin::Imported {
                    self.export_of(who, object.fingerprint).into_iter().for_each(each);
                } else {
                    let of_it = state.handles.values().filter(|data| data.exported == Some(object.serial));
                    of_it.filter_map(|data| data.export).for_each(&mut each);
                }
            }
            _ => {}
        }
    }

    fn holdings<'a>(
        &'a self,
        who: ProcessId,
        state: &'a ProcessState,
    ) -> impl Iterator<Item = (ExportId, Holder)> + 'a {
        let mappings = state.mappings.iter().filter(|_| state.ended.is_none());
        let mappings = mappings.filter(|(_, mapping)| mapping.state == State::Alive);
        let mappings = mappings.filter_map(move |(pointer, mapping)| {
            let opened = Handle { kind: Kind::Mapping, value: pointer };
            let opens = mapping.opens.len() as u64;
            Some((mapping.export?, Holder { process: who, opened, opens, since: mapping.first_open()? }))
        });
        let objects = state.objects.iter();
        let objects = objects.filter(|(_, object)| object.origin == Origin::Imported && object.state == State::Alive);
        let objects = objects.filter_map(move |(handle, object)| {
            let id = self.export_of(who, object.fingerprint)?;
            Some((id, Holder { process: who, opened: *handle, opens: 1, since: object.born }))
        });
        mappings.chain(objects)
    }
}

/// The calls of a process that wait for a shared event.
fn waits(state: &ProcessState) -> impl Iterator<Item = (ExportId, Place)> {
    state.pending.iter().filter_map(|pending| {
        let PendingChange::Wait(event) = pending.change else { return None };
        Some((state.objects.get(&event)?.export?, pending.place))
    })
}
