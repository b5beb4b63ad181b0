//! The enter of a call: its facts, which say what it is about to end, export, open or create; then its transition.

use std::num::NonZeroU64;

use urscope_schema::api::{Effect, Promise};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{Begun, Command, Create, Export, Free, LateAccess, Open, Operation, Requested};

use super::fact::{
    DeadAccess, Ending, Exporting, Fact, FactConsumer, ForeignUse, InUse, KindMismatch, Opening, OutdatedUse, PastEnd,
    Source, StaleEvent, StaleUse, Target, What,
};
use super::records::{self, Mapping, Origin};
use super::{process_state::ProcessState, state::Tracker, transitions};
use crate::lifecycle::State;
use crate::place::{Place, ProcessId};

impl Tracker {
    /// A call begins. Its facts show the tracker as it was before; then the tracker changes.
    pub fn enter(&mut self, who: ProcessId, begun: &Begun, facts: &mut (impl FactConsumer + ?Sized)) {
        let at = Place::from_begun(who, begun);
        if let Some(fault) = begun.fault {
            self.emit(facts, at, What::InvalidArgument(fault));
        }
        let resolved;
        let operation = match &begun.operation {
            Operation::Open(open) => {
                resolved = Operation::Open(self.resolved(who, open));
                &resolved
            }
            other => other,
        };
        self.facts_of_enter(at, operation, facts);
        self.call_returned(who, at.tid);
        match operation {
            Operation::Enqueue(command) => self.command_begins(at, command),
            Operation::Wait(_) | Operation::UseEvent(_) => {
                if let Some(state) = self.state_mut(who) {
                    state.event_used = at.time;
                }
            }
            Operation::Release(Kind::Context, _) | Operation::ReleasePrimary(_) | Operation::ResetPrimary(_) => {
                self.context_ends(who);
            }
            Operation::Export(Export { kind: Kind::EventPool, .. })
            | Operation::Open(Open { makes: Kind::EventPool, .. }) => {
                if let Some(state) = self.state_mut(who) {
                    state.shares_event_pools = true;
                }
            }
            _ => {}
        }
        if begun.is_ipc() {
            self.ipc_calls += 1;
            if let Some(state) = self.state_mut(who) {
                state.ipc_calls += 1;
                state.latest_ipc = at.function;
            }
        }
        transitions::enter(self, at, operation);
    }

    /// Passes a fact to a consumer of its kind.
    #[inline]
    pub(super) fn emit(&self, facts: &mut (impl FactConsumer + ?Sized), at: Place, what: What<'_>) {
        if facts.wants(what.kind()) {
            facts.consume(&Fact { tracker: self, at, what });
        }
    }

    fn facts_of_enter(&self, at: Place, operation: &Operation, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(at.process) else { return };
        let (kind, value, end) = match operation {
            Operation::Put(handle, _) => (handle.kind, Some(handle.value), None),
            // Memory that an allocation has imported is a mapping.
            Operation::Free(free) if free.pointer.is_some_and(|it| state.is_imported(it)) => {
                (Kind::Mapping, free.pointer, Some(free))
            }
            Operation::Free(free) => (Kind::Usm, free.pointer, Some(free)),
            Operation::Close(free) => (Kind::Mapping, free.pointer, Some(free)),
            Operation::Destroy(kind, object) => (*kind, *object, None),
            // References to events are also held by commands, which are not recorded.
            Operation::Release(Kind::PhysicalMem, object) => (Kind::PhysicalMem, *object, None),
            Operation::Export(export) => {
                let source = source(at, state, export);
                return self.emit(facts, at, What::Exporting(Exporting { export, source }));
            }
            // A descriptor may be one of another API.
            Operation::Open(open) if open.imports => {
                let Open { makes: kind, context, device, size, .. } = *open;
                let create = Create { kind, is_shareable: true, context, device, size };
                return self.emit(facts, at, What::Creating(create));
            }
            Operation::Open(open) => return self.emit(facts, at, What::Opening(self.opening(at.process, open))),
            Operation::Allocate(Requested { context, device, size, .. }) => {
                let context = *context;
                let device = *device;
                let size = *size;
                let create = Create { kind: Kind::Usm, is_shareable: false, context, device, size };
                return self.emit(facts, at, What::Creating(create));
            }
            Operation::Create(create) => return self.emit(facts, at, What::Creating(*create)),
            Operation::Wait(event) | Operation::UseEvent(event) => {
                if let Some(stale) = self.stale_event(state, *event) {
                    self.emit(facts, at, What::StaleEvent(&stale));
                }
                return;
            }
            Operation::Unmap { from, size } => {
                if let Some(in_use) = unmapped_in_use(state, from, *size) {
                    self.emit(facts, at, What::InUse(&in_use));
                }
                return;
            }
            Operation::Enqueue(Command { writes, reads, size, is_not_host, context, .. }) => {
                let accesses = [(*writes, true), (*reads, false)];
                let mappings = [*writes, *reads].map(|address| state.mapping_at(address?));
                for foreign in
                    mappings.into_iter().flatten().filter_map(|(base, it)| foreign(at, state, base, it, *context))
                {
                    self.emit(facts, at, What::ForeignUse(&foreign));
                }
                for stale in mappings.into_iter().flatten().filter_map(|(base, mapping)| self.stale(base, mapping)) {
                    self.emit(facts, at, What::StaleUse(&stale));
                }
                for outdated in accesses.into_iter().filter_map(|(address, _)| self.outdated(state, address?)) {
                    self.emit(facts, at, What::OutdatedUse(&outdated));
                }
                for (access, mapping) in accesses.into_iter().zip(mappings) {
                    if let Some(past) = size.and_then(|size| self.past_end(state, access, mapping, size)) {
                        self.emit(facts, at, What::PastEnd(&past));
                    }
                }
                for ((address, writes), _) in accesses.into_iter().zip(*is_not_host).filter(|(_, is_not)| *is_not) {
                    if let Some(used) = address.and_then(|address| state.ended_at(address)) {
                        self.emit(
                            facts,
                            at,
                            What::DeadAccess(&DeadAccess { used, writes, appended: None, is_executed: false }),
                        );
                    }
                }
                return;
            }
            Operation::Execute(executed) => {
                if let Some(dead) = dead_at_execution(state, executed) {
                    self.emit(facts, at, What::DeadAccess(&dead));
                }
                return;
            }
            _ => return,
        };
        // Null is no object: it is the result of a get or open that failed although the adapter returned success.
        let Some(value) = value.filter(|value| *value != 0) else { return };
        let what = ending(at, state, Handle { kind, value }, end);
        self.emit(facts, at, what);
        if let What::Ending(ending) = what
            && let Some(in_use) = end.and_then(|end| in_use(at, state, &ending, end))
        {
            self.emit(facts, at, What::InUse(&in_use));
        }
    }

    /// A mapping that is accessed, if its memory was freed after it was opened.
    fn stale(&self, pointer: u64, mapping: &Mapping) -> Option<StaleUse> {
        let export = self.exports.get(mapping.export?)?;
        let freed = export.last_free?;
        let opened = mapping.first_open()?;
        let anew = || {
            let address = export.subject.value?;
            let (_, other) = self.state(export.producer)?.allocation_at(address)?;
            let latest = other.exports.iter().filter_map(|id| self.exports.get(*id)).map(|export| export.latest_get);
            let got = latest.filter(|got| got.time > freed.time).max_by_key(|got| (got.time, got.call))?;
            Some((address, got))
        };
        (opened.time < freed.time).then(|| StaleUse {
            mapping: Handle { kind: Kind::Mapping, value: pointer },
            size: mapping.size.or(mapping.extent),
            fingerprint: mapping.fingerprint,
            opened,
            freed,
            anew: anew(),
        })
    }

    /// Mapped memory of another process at an address, if it was accessed before and its owner has replaced it since.
    fn outdated(&self, state: &ProcessState, address: u64) -> Option<OutdatedUse> {
        let (start, range) = state.mapped.around(address)?;
        let export = self.exports.get(range.export?)?;
        let replaced = self.state(export.producer)?.replaced_memory.get(&export.subject.serial?)?;
        range.first_access.filter(|first| *first < replaced.unmapped.time)?;
        Some(OutdatedUse {
            mapping: Handle { kind: Kind::Mapping, value: start },
            size: range.end - start,
            fingerprint: export.fingerprint(),
            mapped: range.place,
            address: replaced.address,
            unmapped: replaced.unmapped,
            anew: replaced.mapped,
        })
    }

    /// An opened event, if its owner has destroyed it.
    fn stale_event(&self, state: &ProcessState, value: u64) -> Option<StaleEvent> {
        let event = Handle { kind: Kind::Event, value };
        let object = state.objects.get(&event).filter(|object| object.origin == Origin::Imported)?;
        let destroyed = self.exports.get(object.export?)?.last_free?;
        Some(StaleEvent { event, fingerprint: object.fingerprint, opened: object.born, destroyed })
    }

    /// The shared memory that an access of `length` bytes begins in, `mapping` if it is one, if it ends outside of it.
    fn past_end(
        &self,
        state: &ProcessState,
        (address, writes): (Option<u64>, bool),
        mapping: Option<(u64, &Mapping)>,
        length: u64,
    ) -> Option<PastEnd> {
        let address = address?;
        if mapping.is_none() && state.shared_physical_at(address).is_some() {
            return past_mapped(state, address, writes, length);
        }
        let (memory, size, fingerprint, born) = if let Some((base, mapping)) = mapping {
            let size = mapping.size.filter(|_| self.has_size_of_export(mapping))?;
            (Handle { kind: Kind::Mapping, value: base }, size, mapping.fingerprint, mapping.first_open())
        } else {
            let (base, memory) = state.allocation_at(address).filter(|(_, memory)| memory.is_exported())?;
            (Handle { kind: Kind::Usm, value: base }, memory.requested.size?, None, memory.born)
        };
        let offset = address - memory.value;
        let is_past = offset < size && length > size - offset;
        is_past.then_some(PastEnd { memory, size, fingerprint, born, offset, length, writes })
    }

    /// Whether a mapping begins and ends where the memory does that was exported. A handle that is a descriptor names
    /// the whole allocation of the driver, of which that memory may be a part.
    fn has_size_of_export(&self, mapping: &Mapping) -> bool {
        let is_descriptor = |place: &Place| place.promises(Promise::HandlesAreDescriptors);
        if !mapping.source().as_ref().is_some_and(is_descriptor) {
            return true;
        }
        let exported = || {
            let export = self.exports.get(mapping.export?)?;
            let address = export.subject.value?;
            let (base, memory) = self.state(export.producer)?.allocation_at(address)?;
            Some(base == address && memory.born.as_ref().is_some_and(is_descriptor))
        };
        exported().unwrap_or(false)
    }

    /// The fact of an open.
    fn opening<'t>(&'t self, who: ProcessId, open: &'t Open) -> Opening<'t> {
        let of_bytes = self.export_of(who, open.fingerprint);
        let found = of_bytes.and_then(|id| Some((id, self.exports.get(id)?)));
        let mismatch = found.filter(|(_, export)| export.subject.kind != open.of).map(|(_, export)| {
            let is = Handle { kind: export.subject.kind, value: open.data.unwrap_or_default() };
            KindMismatch { expected: open.of, is, born: export.latest_get, fingerprint: open.fingerprint }
        });
        let export = found.filter(|_| mismatch.is_none()).map(|(id, _)| id);
        Opening { open, export, mismatch }
    }
}

/// The access of a command whose list is executed, if its memory has ended since it was appended.
fn dead_at_execution(state: &ProcessState, executed: &LateAccess) -> Option<DeadAccess> {
    let LateAccess { address, writes, appended } = *executed;
    let is_it = |command: &&records::Command| command.place.call.map(NonZeroU64::get) == appended;
    let appended = state.commands.iter().rev().find(is_it).map(|command| command.place);
    let used = state.ended_at(address)?;
    // Otherwise the append is reported.
    let has_ended_since = appended.is_none_or(|append| append.time < used.died.time);
    has_ended_since.then_some(DeadAccess { used, writes, appended, is_executed: true })
}

/// A mapping that is accessed, if it is not open in the context of the queue of the command.
fn foreign(
    at: Place,
    state: &ProcessState,
    pointer: u64,
    mapping: &Mapping,
    context: Option<u64>,
) -> Option<ForeignUse> {
    let context = context?;
    if mapping.is_open_in(Some(context), at) {
        return None;
    }
    let open = mapping.opens.last()?;
    let opened = open.place;
    let of = open.context?;
    let size = mapping.size;
    let fingerprint = mapping.fingerprint;
    let mapping = Handle { kind: Kind::Mapping, value: pointer };
    let is_certain = [of, context].iter().all(|context| state.contexts.contains_key(context));
    Some(ForeignUse { mapping, size, fingerprint, opened, of, context, is_certain })
}

/// The source of a get: what it exports.
fn source<'t>(at: Place, state: &'t ProcessState, export: &Export) -> Source<'t> {
    let kind = export.kind;
    if kind != Kind::Usm {
        let Some(value) = export.object else { return Source::Unknown };
        let object = Handle { kind, value };
        return match state.objects.get(&object) {
            Some(known) => Source::Object(object, known),
            None => state.of_another_kind(kind, value).map_or(Source::Unknown, Source::OtherKind),
        };
    }
    // The properties of physical memory export a descriptor of it.
    if let Some((handle, object)) = export.object.and_then(|it| state.physical_at(it)) {
        return Source::Object(handle, object);
    }
    let Some(value) = export.pointer else { return Source::Unknown };
    if let Some((base, allocation)) = state.allocation_at(value) {
        return Source::Allocation(base, allocation);
    }
    if let Some((base, mapping)) = state.mapping_at(value) {
        return Source::Mapping(base, mapping);
    }
    // Whether it was made to be exported or not.
    if at.promises(Promise::PhysicalMemoryIsMemory) && state.physical_at(value).is_some() {
        return Source::Unknown;
    }
    let end =
        || state.allocation_that_ends_at(value).map_or(Source::Unknown, |(base, known)| Source::EndOf(base, known));
    state.of_another_kind(kind, value).map_or_else(end, Source::OtherKind)
}

/// The fact of a call that is to end an object, or to release a reference to it.
fn ending<'t>(at: Place, state: &'t ProcessState, object: Handle, free: Option<&Free>) -> What<'t> {
    let Handle { kind, value } = object;
    let context = free.and_then(|free| free.context);
    let effect = at.effect();
    let mut target = state.target(kind, value);
    let before = match target {
        Target::Handle(data) => data.state,
        Target::Object(object) => object.state,
        Target::Mapping(mapping) if kind == Kind::Mapping => mapping.state,
        Target::Ended(_) => State::Dead,
        _ => state.state(object),
    };
    let valid = match target {
        Target::Handle(data) => data.state == State::Alive,
        // An object of this process is released, not closed.
        Target::Object(object) => {
            object.state == State::Alive && (!effect.is_some_and(Effect::is_ipc) || object.origin == Origin::Imported)
        }
        Target::Allocation(_) => kind == Kind::Usm,
        Target::Mapping(mapping) => {
            let frees = effect != Some(Effect::Closes(Kind::Usm));
            let is_open = mapping.state == State::Alive && mapping.is_open_in(context, at);
            kind == Kind::Mapping && is_open && mapping.imported == frees
        }
        Target::Nothing if before == State::Inherited => true,
        // An address belongs to the object that was made there last.
        Target::Nothing | Target::Ended(_) => match state.of_another_kind(kind, value) {
            Some(mismatch) => {
                target = Target::OtherKind(mismatch);
                false
            }
            // The tracker does not know all USM.
            None => kind == Kind::Usm,
        },
        Target::Inside(..) | Target::OtherKind(_) => false,
    };
    let ending = Ending { object, context, state: before, target };
    if valid { What::Ending(ending) } else { What::InvalidEnding(ending) }
}

/// The commands that access the shared memory that a call ends; `None` if all have completed, or may have.
fn in_use(at: Place, state: &ProcessState, ending: &Ending<'_>, free: &Free) -> Option<InUse> {
    let (size, fingerprint) = match ending.target {
        // With a further open, the memory stays. Its extent may reach into other memory of the same block, so
        // without the exporter's size only its first byte is certain.
        Target::Mapping(mapping) if mapping.opens.len() == 1 => (mapping.size, mapping.fingerprint),
        Target::Allocation(memory) if memory.is_exported() => (memory.requested.size, None),
        _ => return None,
    };
    let memory = ending.object;
    let (command, unfinished) = in_flight(state, free, memory.value, size.unwrap_or(1));
    // Another thread may have waited for its command and closed its own open since the device was asked.
    if let Target::Mapping(mapping) = ending.target
        && mapping.closed > 0
        && !command.is_some_and(|command| command.tid == at.tid || command.time > mapping.last_close)
    {
        return None;
    }
    (unfinished.is_some() || command.is_some()).then_some(InUse { memory, size, fingerprint, command, unfinished })
}

/// The commands that access the shared physical memory that a call unmaps; `None` if all have completed, or may have.
fn unmapped_in_use(state: &ProcessState, from: &Free, size: u64) -> Option<InUse> {
    let pointer = from.pointer?;
    let (range, object) = state.shared_physical_at(pointer)?;
    let (command, unfinished) = in_flight(state, from, pointer, size);
    // One from before accesses what was mapped there then.
    let command = command.filter(|command| command.time > range.place.time);
    let memory = range.memory;
    let size = object.size;
    let fingerprint = object.fingerprint;
    (unfinished.is_some() || command.is_some()).then_some(InUse { memory, size, fingerprint, command, unfinished })
}

/// The command that accesses memory which a call ends, if it is not known to have completed, and the offset of the
/// first byte that the device says is accessed.
fn in_flight(state: &ProcessState, free: &Free, start: u64, length: u64) -> (Option<Place>, Option<u64>) {
    let unfinished = free.unfinished.filter(|offset| *offset < length);
    let mut commands = state.commands.iter().filter(|command| command.accesses(start, length));
    let is_judged = free.at_once && !free.completed;
    // Of a command list, it is not known when it was executed.
    let may_be_unfinished = |command: &&records::Command| match command.position {
        Some(position) => command.place.time > state.waited_for_all && !state.queues.is_known(position),
        None => command.place.time > state.waited,
    };
    let first = if is_judged { commands.clone().find(may_be_unfinished) } else { None };
    let command = first.or_else(|| commands.next_back().filter(|_| unfinished.is_some()));
    (command.map(|found| found.place), unfinished)
}

/// The mapped physical memory that an access begins in, if it ends outside of it, and of what is mapped right behind
/// it.
fn past_mapped(state: &ProcessState, address: u64, writes: bool, length: u64) -> Option<PastEnd> {
    // What was mapped before the trace began is not known.
    if state.inherits_anything() {
        return None;
    }
    let (start, range) = state.mapped.around(address)?;
    let end = state.mapped.end_from(address);
    let past = PastEnd {
        memory: range.memory,
        size: end - start,
        fingerprint: None,
        born: Some(range.place),
        offset: address - start,
        length,
        writes,
    };
    (length > end - address).then_some(past)
}
