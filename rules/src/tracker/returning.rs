//! The return of a call: the facts that show the tracker as it was before, then the transition and its facts.

use urscope_schema::{
    api::{Effect, Function},
    call::{Exit, Values},
    handle::{Handle, Kind},
};

use super::{
    ProcessId, Tracker,
    exports::DataSize,
    fact::{FactConsumer, Outcome, Refused, Returned, Returning, UnknownHandle, What},
    pending::{Opens, Operation, PendingCall},
    records::{Origin, Requested, UsmType},
    transitions,
    usual::Returns,
};
use crate::finding::Place;

impl Tracker {
    /// A call returns. Facts about the call show the tracker as it was before, those about what became of it as it is
    /// afterwards.
    pub fn exit(&mut self, who: ProcessId, exit: &Exit, facts: &mut (impl FactConsumer + ?Sized)) {
        if let Some(returns) = Returns::of(exit)
            && self.exit_usual(who, &returns, facts)
        {
            return;
        }
        self.repeats.forget();
        let Some(state) = self.state_mut(who) else { return };
        state.tombstones.returned(exit.time);
        if let Some((index, usual)) = state.pending.usual(exit.call) {
            let mut pending = usual.pending(who);
            state.pending.remove_usual(index);
            return self.exit_of(&mut pending, exit, facts);
        }
        let Some(mut pending) = state.pending.remove(exit.call) else {
            // What is made is known at least, so that its end is no surprise.
            return self.became(&mut without_enter(who, exit), exit, outcome(exit), facts);
        };
        self.exit_of(&mut pending, exit, facts);
        self.spare.give(pending);
    }

    fn exit_of(&mut self, pending: &mut PendingCall, exit: &Exit, facts: &mut (impl FactConsumer + ?Sized)) {
        let outcome = outcome(exit);
        let Place { process, time, function, .. } = pending.place;
        if let (Some(state), Some(function)) = (self.state_mut(process), function) {
            state.durations.note(function, time, exit.time, || pending.place);
        }
        self.facts_of_return(pending, exit, outcome, facts);
        if outcome == Outcome::Done {
            self.note_size(pending, exit);
        }
        self.became(pending, exit, outcome, facts);
    }

    #[inline]
    fn became(
        &mut self,
        pending: &mut PendingCall,
        exit: &Exit,
        outcome: Outcome,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        if outcome != Outcome::Done
            && let Some((call, kind)) = open_failed(pending, exit).map(|failed| *failed)
        {
            transitions::exit(self, pending, exit, facts);
            let refused = Refused { kind, result: exit.result, opens: exit.function.opens(), call: &call };
            return self.emit(facts, call.place, What::OpenFailed(refused));
        }
        transitions::exit(self, pending, exit, facts);
    }

    #[inline]
    fn facts_of_return(
        &self,
        pending: &PendingCall,
        exit: &Exit,
        outcome: Outcome,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        let place = pending.place;
        let makes = match exit.function.effect() {
            Effect::Makes(kind) => Some(kind),
            _ => None,
        };
        if let (Outcome::Refused(result), Some(kind)) = (outcome, makes) {
            let refused = Refused { kind, result, opens: exit.function.opens(), call: pending };
            self.emit(facts, place, What::Refused(refused));
        }
        if let Operation::Open(open) = &pending.operation {
            if let Some(expired) = &open.expired {
                self.emit(facts, place, What::OpenedExpired(expired, outcome));
            }
            if let Some(unknown) = self.unknown(place, open, exit, outcome) {
                self.emit(facts, place, What::OpenedUnknown(unknown));
            }
        }
        let of = match makes {
            Some(kind) if kind.shares().is_none() => Returning::Making,
            Some(_) if self.has_denied => Returning::Getting,
            _ => Returning::Other,
        };
        self.emit(facts, place, What::Returned(Returned { call: exit.call, time: exit.time, outcome, of }));
    }

    /// An open of bytes that no traced process got, neither before it began nor meanwhile.
    fn unknown(&self, place: Place, open: &Opens, exit: &Exit, outcome: Outcome) -> Option<UnknownHandle> {
        let Opens { export: None, fingerprint: Some(fingerprint), named, data, size, .. } = *open else { return None };
        if self.export_of(place.process, Some(fingerprint)).is_some() {
            return None;
        }
        let overwritten =
            data.is_some_and(|data| self.state(place.process).is_some_and(|state| state.opened_at.contains(data)));
        let handle = Handle { kind: exit.function.opens()?, value: data.unwrap_or_default() };
        Some(UnknownHandle { handle, fingerprint, size, outcome, overwritten, named })
    }

    fn note_size(&mut self, pending: &PendingCall, exit: &Exit) {
        if let (Effect::Makes(kind), Some(size)) = (exit.function.effect(), exit.values.data_size)
            && kind.shares().is_some()
            && let Tracker { states, exports, .. } = self
            && let Some(state) = states.get_mut(pending.place.process.0 as usize)
        {
            exports.note_size(DataSize { host: state.process.host, kind, size, got: pending.place });
            if kind == Kind::MemHandle {
                state.noted_size = Some(size);
            }
        }
    }
}

/// If a call that made nothing is an open: what it was about.
#[cold]
fn open_failed(pending: &PendingCall, exit: &Exit) -> Option<Box<(PendingCall, Kind)>> {
    let Effect::Makes(kind) = exit.function.effect() else { return None };
    exit.function.opens().map(|_| Box::new((pending.clone(), kind)))
}

/// What became of a call: one that makes something has to give it.
#[inline]
fn outcome(exit: &Exit) -> Outcome {
    let given = match exit.function.effect() {
        Effect::Makes(kind) => is_given(kind, &exit.values),
        _ => true,
    };
    if exit.result.is_success() && given { Outcome::Done } else { Outcome::Refused(exit.result) }
}

/// Whether a success has made what it should have made. A get that only queries the size returns the size.
fn is_given(kind: Kind, values: &Values) -> bool {
    let made = match kind {
        Kind::Usm | Kind::Mapping => values.pointer,
        Kind::Context => values.context,
        Kind::PhysicalMem | Kind::Event | Kind::EventPool | Kind::Pool => values.object,
        _ if values.data.is_none() => values.data_size,
        _ => values.data,
    };
    made.is_some_and(|made| made != 0)
}

/// A call whose enter is missing.
fn without_enter(process: ProcessId, exit: &Exit) -> PendingCall {
    let Exit { function, call, tid, time, .. } = *exit;
    let place = Place { process, tid, time, call: Some(call), function: Some(function), stack: None };
    PendingCall { place, operation: operation_without_enter(function) }
}

fn operation_without_enter(function: Function) -> Operation {
    match function.effect() {
        Effect::Makes(kind) if kind.shares().is_some() => {
            Operation::Get { kind, value: None, exported: None, slot: None, context: None, dangling: None }
        }
        Effect::Makes(kind) if function.opens().is_some() => Operation::Open(Opens {
            kind,
            context: None,
            device: None,
            fingerprint: None,
            export: None,
            expired: None,
            named: None,
            data: None,
            size: None,
            imports: false,
        }),
        // Its flags are not known: what is shareable is never a violation.
        Effect::Makes(kind) if kind.is_object() => {
            Operation::Create { kind, origin: Origin::Shareable, context: None, size: None }
        }
        Effect::Makes(Kind::Usm) => {
            Operation::Allocate(Requested { usm: UsmType::of(function), ..Requested::default() })
        }
        Effect::Makes(Kind::Context) => Operation::CreateContext(None),
        _ if matches!(function, Function::urVirtualMemUnmap | Function::zeVirtualMemUnmap) => Operation::UnmapUnknown,
        _ => Operation::Nothing,
    }
}
