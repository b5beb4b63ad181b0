//! The exit of a call: the facts that show the tracker as it was before, then the transition and its facts.

use std::num::NonZeroU64;

use urscope_schema::handle::Handle;
use urscope_schema::operation::{Create, Export, Open, Operation, Returned};
use urscope_schema::{api::Effect, call::Values};

use super::fact::{self, CallFailed, Exported, FactConsumer, Freed, Outcome, Put, Refused, UnknownHandle, What};
use super::pending::{PendingCall, PendingChange, PendingOpen};
use super::{changes::Change, state::Tracker, transitions};
use crate::place::{Place, ProcessId};

impl Tracker {
    /// A call returns. Facts about the call show the tracker as it was before, those about its changes as
    /// it is afterwards.
    pub fn exit(&mut self, who: ProcessId, exit: &Returned, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state_mut(who) else { return };
        state.tombstones.returned(exit.time);
        // A call that makes something must return it to succeed.
        let succeeded = exit.result.is_success() && exit.answer.is_complete();
        let outcome = if succeeded { Outcome::Succeeded } else { Outcome::Refused(exit.result) };
        let mut begun = state.pending.take(exit.call);
        let Some(pending) = &mut begun else {
            // Without its enter, the object that is made is known at least, so that its end is not reported.
            return self.change(&mut without_enter(who, exit), exit, facts);
        };
        self.facts_of_return(pending, exit, outcome, facts);
        self.change(pending, exit, facts);
        if !exit.result.is_success() {
            self.emit(facts, pending.place, What::CallFailed(CallFailed { result: exit.result, call: pending }));
        }
    }

    /// The changes that a call makes, with their facts.
    fn change(&mut self, pending: &mut PendingCall, exit: &Returned, facts: &mut (impl FactConsumer + ?Sized)) {
        let place = pending.place;
        for change in transitions::exit(self, pending, exit) {
            self.fact_of_change(place, &change, exit, facts);
        }
    }

    fn facts_of_return(
        &self,
        pending: &PendingCall,
        exit: &Returned,
        outcome: Outcome,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        let place = pending.place;
        if let (Outcome::Refused(result), Some(kind)) = (outcome, exit.answer.makes) {
            let refused = Refused { kind, result, opens: exit.function.effect().opens(), call: pending };
            self.emit(facts, place, What::Refused(refused));
        }
        if let Some((open, known)) = pending.open() {
            if let Some(expired) = &known.expired {
                self.emit(facts, place, What::OpenedExpired(expired, outcome));
            }
            if let Some(unknown) = self.unknown(place, open, known, exit, outcome) {
                self.emit(facts, place, What::OpenedUnknown(&unknown));
            }
        }
        self.emit(facts, place, What::Returned(fact::Returned { time: exit.time, outcome }));
    }

    /// Emits the fact of a change by a call that began at `at`.
    fn fact_of_change(&self, at: Place, change: &Change, exit: &Returned, facts: &mut (impl FactConsumer + ?Sized)) {
        let took = exit.time.0.saturating_sub(at.time.0);
        let what = match change {
            Change::Dangling(dangling) => {
                let result = if exit.result.is_success() { Outcome::Succeeded } else { Outcome::Refused(exit.result) };
                What::Dangling(dangling, result)
            }
            Change::Allocated(handle) => What::Allocated(*handle),
            Change::Exported { of, handle, replaced } => {
                let data = self.state(at.process).and_then(|state| state.handles.get(handle));
                let Some(data) = data else { return };
                let of = *of;
                let handle = *handle;
                let replaced = *replaced;
                What::Exported(Exported { of, handle, data, answer: &exit.answer, took, replaced })
            }
            Change::Opened(opened) => What::Opened(*opened),
            Change::Put(ended, export) => {
                What::Put(Put { handle: ended.handle, serial: ended.serial, export: *export, took })
            }
            Change::Closed(ended) => What::Closed(*ended),
            Change::Freed(how, what, serial, size) => {
                let freed = Freed { how: *how, ..Freed::new(*what, *serial, *size) };
                return self.emit(facts, at, What::Freed(&freed));
            }
            Change::FreedWith(freed) => What::Freed(freed),
            Change::ContextReleased(freed) => What::ContextReleased(freed),
            Change::EndRefused(handle) => What::EndRefused(*handle),
            Change::Support(support) => What::Support(*support),
        };
        self.emit(facts, at, what);
    }

    /// An open of bytes that no traced process got, neither before its enter nor meanwhile.
    fn unknown(
        &self,
        place: Place,
        open: &Open,
        known: &PendingOpen,
        exit: &Returned,
        outcome: Outcome,
    ) -> Option<UnknownHandle> {
        let Open { fingerprint: Some(fingerprint), named, data, size, one_of, .. } = *open else { return None };
        let now = self.resolved(place.process, open).fingerprint;
        if known.export.is_some() || self.export_of(place.process, now).is_some() {
            return None;
        }
        let got = |bytes| Some(self.exports.get(self.export_of(place.process, Some(bytes))?)?.latest_get);
        let one_of = one_of.and_then(|[one, other]| Some([got(one)?, got(other)?]));
        let overwritten =
            data.is_some_and(|data| self.state(place.process).is_some_and(|state| state.opened_at.contains_key(&data)));
        let handle = Handle { kind: exit.function.effect().opens()?, value: data.unwrap_or_default() };
        let altered = known.altered.as_deref().copied();
        Some(UnknownHandle { handle, fingerprint, size, outcome, overwritten, named, altered, one_of })
    }
}

/// A call whose enter is missing.
fn without_enter(process: ProcessId, exit: &Returned) -> PendingCall {
    let Returned { function, call, tid, time, .. } = *exit;
    let place = Place { process, tid, time, call: NonZeroU64::new(call), function: Some(function), stack: None };
    let operation = Operation::from_call(function, &Values::NONE);
    let change = match operation {
        Operation::Export(Export { kind, .. }) => match kind.handle_data() {
            Some(kind) => PendingChange::Get { kind, value: None, exported: None, context: None, dangling: None },
            None => PendingChange::Nothing,
        },
        Operation::Open(_) => PendingChange::Open(PendingOpen::default()),
        // Its flags are not known. A shareable object is never a violation.
        Operation::Create(create) => PendingChange::Create(Create { is_shareable: true, ..create }),
        Operation::Allocate(requested) => PendingChange::Allocate(requested),
        Operation::CreateContext(_) => PendingChange::CreateContext(None),
        _ if matches!(function.effect(), Effect::Unmaps(_)) => PendingChange::UnmapUnknown,
        _ => PendingChange::Nothing,
    };
    PendingCall { place, operation, change }
}
