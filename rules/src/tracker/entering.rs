//! The enter of a call: its facts, which say what it is about to end, export, open or create; then its transition.

use std::num::NonZeroU64;

use urscope_schema::{
    api::{Effect, demand::Nulls},
    call::Enter,
    handle::{Handle, Kind},
};

use super::{
    exports::Export,
    fact::{Ending, Exporting, Fact, FactConsumer, InUse, KindMismatch, Opening, Source, StaleUse, Target, What},
    process_state::ProcessState,
    records::Origin,
    state::Tracker,
    transitions,
};
use crate::{
    lifecycle::State,
    place::{Place, ProcessId},
};

impl Tracker {
    /// A call begins. Its facts show the tracker as it was before; then the tracker changes.
    pub fn enter(&mut self, who: ProcessId, enter: &Enter, facts: &mut (impl FactConsumer + ?Sized)) {
        self.enter_with(who, enter, &enter.function.nulls(&enter.values), facts);
    }

    /// [`Self::enter`] with NULL arguments that the record does not show.
    pub fn enter_with(
        &mut self,
        who: ProcessId,
        enter: &Enter,
        nulls: &Nulls,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        self.facts_of_enter(who, enter, nulls, facts);
        if enter.is_ipc() {
            self.ipc_calls += 1;
            if let Some(state) = self.state_mut(who) {
                state.ipc_calls += 1;
            }
        }
        transitions::enter(self, who, enter);
    }

    /// Passes a fact to a consumer of its kind.
    #[inline]
    pub(super) fn emit(&self, facts: &mut (impl FactConsumer + ?Sized), at: Place, what: What<'_>) {
        if facts.wants(what.kind()) {
            facts.consume(&Fact { tracker: self, at, what });
        }
    }

    fn facts_of_enter(&self, who: ProcessId, enter: &Enter, nulls: &Nulls, facts: &mut (impl FactConsumer + ?Sized)) {
        if let Some(fault) = nulls.fault(enter.function, &enter.values) {
            self.emit(facts, Place::of(who, enter), What::InvalidArgument(fault));
        }
        let Some(state) = self.state(who) else { return };
        let values = &enter.values;
        let (kind, value) = match enter.function.effect() {
            Effect::Ends(kind) if kind.shares().is_some() => (kind, values.data),
            // Memory that an allocation has imported is a mapping.
            Effect::Ends(Kind::Usm) if values.pointer.is_some_and(|it| state.is_imported(it)) => {
                (Kind::Mapping, values.pointer)
            }
            Effect::Ends(kind) => (kind, values.pointer),
            // References to events are also held by commands, which are not recorded.
            Effect::Releases(kind @ (Kind::PhysicalMem | Kind::EventPool)) => (kind, values.object),
            Effect::Releases(Kind::Event) if enter.function.is_level_zero() => (Kind::Event, values.object),
            Effect::Makes(made) => {
                let what = self.making(who, state, enter, made);
                self.emit(facts, Place::of(who, enter), what);
                return;
            }
            Effect::Uses(Kind::Usm) => {
                for stale in
                    [values.pointer, values.source].into_iter().flatten().filter_map(|it| self.stale(state, it))
                {
                    self.emit(facts, Place::of(who, enter), What::StaleUse(&stale));
                }
                return;
            }
            _ => return,
        };
        // Null is no object: it is the result of a get or open that failed although the adapter returned success.
        let Some(value) = value.filter(|value| *value != 0) else { return };
        let what = ending(state, enter, Handle { kind, value });
        self.emit(facts, Place::of(who, enter), what);
        if let What::Ending(ending) = what
            && let Some(in_use) = in_use(state, &ending, enter)
        {
            self.emit(facts, Place::of(who, enter), What::InUse(&in_use));
        }
    }

    /// The mapping that an address lies in, if its memory was freed and its exporter shares other memory at
    /// the same address.
    fn stale(&self, state: &ProcessState, address: u64) -> Option<StaleUse> {
        let (pointer, mapping) = state.mapping_at(address)?;
        let export = self.exports.get(mapping.export?)?;
        let (freed, address) = (export.last_free()?, export.subject.value?);
        let (_, other) = self.state(export.producer())?.allocation_at(address)?;
        let latest = other.exports.iter().filter_map(|id| self.exports.get(*id)).map(Export::latest_get);
        let got = latest.filter(|got| got.time > freed.time).max_by_key(|got| (got.time, got.call))?;
        Some(StaleUse {
            mapping: Handle { kind: Kind::Mapping, value: pointer },
            size: mapping.size.or(mapping.extent),
            fingerprint: mapping.fingerprint,
            opened: mapping.last_open()?,
            address,
            freed,
            got,
        })
    }

    /// The fact of a call that is to make handle data or an object.
    fn making<'t>(&'t self, who: ProcessId, state: &'t ProcessState, enter: &'t Enter, made: Kind) -> What<'t> {
        // A descriptor may be one of another API.
        if enter.imports() {
            return What::Creating(enter);
        }
        if let Some(expected) = enter.function.opens() {
            let values = &enter.values;
            let of_bytes = self.export_of(who, values.fingerprint);
            let found = of_bytes.and_then(|id| Some((id, self.exports.get(id)?)));
            let mismatch = found.filter(|(_, export)| export.subject.kind != expected).map(|(_, export)| {
                let is = Handle { kind: export.subject.kind, value: values.data.unwrap_or_default() };
                KindMismatch { expected, is, born: export.latest_get(), fingerprint: values.fingerprint }
            });
            let export = found.filter(|_| mismatch.is_none()).map(|(id, _)| id);
            return What::Opening(Opening { enter, export, mismatch });
        }
        match made.shares() {
            Some(kind) => What::Exporting(Exporting { enter, source: source(state, enter, kind) }),
            None => What::Creating(enter),
        }
    }
}

/// The source of a get: what it exports.
fn source<'t>(state: &'t ProcessState, enter: &Enter, kind: Kind) -> Source<'t> {
    let is_level_zero = enter.function.is_level_zero();
    let value = if kind == Kind::Usm { enter.values.pointer } else { enter.values.object };
    // The properties of physical memory export a descriptor of it.
    if let Some((handle, object)) =
        enter.values.object.filter(|_| kind == Kind::Usm && is_level_zero).and_then(|it| state.physical_at(it))
    {
        return Source::Object(handle, object);
    }
    let Some(value) = value else { return Source::Unknown };
    if kind == Kind::Usm {
        if let Some((base, allocation)) = state.allocation_at(value) {
            return Source::Allocation(base, allocation);
        }
        if let Some((base, mapping)) = state.mapping_at(value) {
            return Source::Mapping(base, mapping);
        }
        // `zeMemGetIpcHandle` takes physical memory, too, whether it was made to be exported or not.
        if is_level_zero && state.physical_at(value).is_some() {
            return Source::Unknown;
        }
    } else {
        let object = Handle { kind, value };
        if let Some(known) = state.objects.get(&object) {
            return Source::Object(object, known);
        }
    }
    state.of_another_kind(kind, value).map_or(Source::Unknown, Source::OtherKind)
}

/// The fact of a call that is to end an object, or to release a reference to it.
fn ending<'t>(state: &'t ProcessState, enter: &Enter, object: Handle) -> What<'t> {
    let Handle { kind, value } = object;
    let mut target = state.target(kind, value);
    let before = match target {
        Target::Handle(data) => data.state,
        Target::Object(object) => object.state,
        Target::Mapping(mapping) if kind == Kind::Mapping => mapping.state,
        Target::Ended(_) => State::Dead,
        _ => state.state(object),
    };
    let function = enter.function;
    let valid = match target {
        Target::Handle(data) => data.state == State::Alive,
        // An object of this process is released, not closed.
        Target::Object(object) => {
            object.state == State::Alive && (!function.is_ipc() || object.origin == Origin::Imported)
        }
        Target::Allocation(_) => kind == Kind::Usm,
        Target::Mapping(mapping) => {
            let frees = function.effect() == Effect::Ends(Kind::Usm);
            let is_open = mapping.state == State::Alive && mapping.is_open_in(enter.values.context);
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
    let ending = Ending { function, object, context: enter.values.context, state: before, target };
    if valid { What::Ending(ending) } else { What::InvalidEnding(ending) }
}

/// The commands that access the shared memory that a call ends; `None` if all have completed, or may have.
fn in_use(state: &ProcessState, ending: &Ending<'_>, enter: &Enter) -> Option<InUse> {
    let (size, fingerprint) = match ending.target {
        // With a further open, the memory stays. Its extent may reach into other memory of the same block, so
        // without the exporter's size only its first byte is certain.
        Target::Mapping(mapping) if mapping.opens.len() == 1 => (mapping.size, mapping.fingerprint),
        Target::Allocation(memory) if memory.is_exported() => (memory.requested.size, None),
        _ => return None,
    };
    let (memory, length) = (ending.object, size.unwrap_or(1));
    let unfinished = enter.values.offset.filter(|offset| *offset < length);
    let mut commands = state.commands.iter().filter(|command| command.accesses(memory.value, length));
    // Call numbers are in the order of time within a thread only; the commands are in that order across threads.
    let first = enter.values.value.and_then(|first| {
        let mut since = state.commands.iter().skip_while(|command| command.place.call != NonZeroU64::new(first));
        since.find(|command| command.accesses(memory.value, length))
    });
    let command = first.or_else(|| commands.next_back().filter(|_| unfinished.is_some())).map(|found| found.place);
    // Another thread may have waited for its command and closed its own open since the device was asked.
    if let Target::Mapping(mapping) = ending.target
        && mapping.closed > 0
        && !command.is_some_and(|command| command.tid == enter.tid || command.time > mapping.last_close)
    {
        return None;
    }
    (unfinished.is_some() || command.is_some()).then_some(InUse { memory, size, fingerprint, command, unfinished })
}
