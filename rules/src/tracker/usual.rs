//! Shortcuts for the calls that programs make again and again: gets of memory that return what a get of it has returned before, and puts of
//! what this process has got.
//!
//! A call takes a shortcut where nothing is unusual, so that no rule can find anything in its facts. Then the tracker moves as it does
//! otherwise, in fewer steps. Where anything else is the case, a shortcut changes nothing, and the general way is taken. A consumer that
//! wants [the facts](FactKind::PartUsualGet) of such calls has all calls take the general way; so a test compares both ways.

use urscope_schema::{
    api::{Function, UrResult},
    call::{Enter, Exit, Nanos, Values},
    handle::{Handle, Kind},
};

use super::{
    ProcessId, Tracker,
    exports::{ExportId, Exports},
    fact::{FactConsumer, FactKind},
    kept::KeptPlace,
    pending::UsualCall,
    process_state::ProcessState,
    records::{Allocation, HandleData, Serial, Tombstone, UsmType},
    repeats::{Pair, Repeats},
    table::Slot,
    transitions::handles,
};
use crate::lifecycle::State;

/// The begin of a call that may be a usual one, with all that a shortcut needs.
#[derive(Clone, Copy, Debug)]
pub struct Begins {
    pub(super) gets: bool,
    call: u64,
    tid: u32,
    time: Nanos,
    stack: Option<u64>,
    pub(super) context: Option<u64>,
    /// The address of the memory that is got, or of the handle data that is put.
    pub(super) subject: u64,
    via: Option<u64>,
}

impl Begins {
    /// The begin of a call none of whose arguments is missing; nothing if its function has no shortcut.
    #[expect(clippy::inline_always, reason = "the function is a constant of most callers")]
    #[inline(always)]
    pub fn of(enter: &Enter) -> Option<Self> {
        let Values { pointer, data, context, stack, via, .. } = enter.values;
        let (gets, subject) = match enter.function {
            Function::urIPCGetMemHandleExp => (true, pointer),
            Function::urIPCPutMemHandleExp => (false, data),
            _ => return None,
        };
        Some(Self { gets, call: enter.call, tid: enter.tid, time: enter.time, stack, context, subject: subject?, via })
    }

    /// The record of the call, with all values that a get or a put has.
    pub const fn record(&self) -> Enter {
        let Self { call, tid, time, .. } = *self;
        Enter { function: function(self.gets), call, tid, time, values: self.values() }
    }

    const fn values(&self) -> Values {
        let Self { stack, context, via, .. } = *self;
        let (pointer, data) = if self.gets { (Some(self.subject), None) } else { (None, Some(self.subject)) };
        Values { via, context, pointer, data, stack, ..Values::NONE }
    }

    /// When the call began.
    #[inline]
    pub const fn time(&self) -> Nanos {
        self.time
    }

    /// The thread that makes the call.
    #[inline]
    pub const fn tid(&self) -> u32 {
        self.tid
    }

    /// The call, about the life of that number, which lies in that slot.
    #[inline]
    pub(super) const fn usual(&self, serial: Serial, slot: Slot) -> UsualCall {
        let Self { gets, call, tid, time, stack, context, subject, .. } = *self;
        UsualCall { call, time, stack, subject, serial, context, slot, tid, gets }
    }
}

/// The success of a call that may be a usual one, with all that a shortcut needs.
#[derive(Clone, Copy, Debug)]
pub struct Returns {
    pub(super) call: u64,
    tid: u32,
    time: Nanos,
    /// What a get has returned; nothing of a put.
    pub(super) got: Option<Got>,
}

/// What a get has returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) data: u64,
    pub(super) data_size: u64,
    pub(super) fingerprint: u64,
    /// Where the memory begins that the driver exports, and its size, where the handle data says so.
    memory: Option<(u64, u64)>,
}

impl Got {
    /// Whether the driver exports no more than the memory that begins at `base`.
    #[inline]
    pub(super) fn is_within(&self, base: u64, memory: &Allocation) -> bool {
        let begins_there = |(start, bytes)| start == base && memory.requested.size.is_some_and(|size| bytes <= size);
        self.memory.is_none_or(begins_there)
    }
}

impl Returns {
    /// The return of a call; nothing if it has failed or its function has no shortcut.
    #[expect(clippy::inline_always, reason = "the function is a constant of most callers")]
    #[inline(always)]
    pub fn of(exit: &Exit) -> Option<Self> {
        let Values { data, data_size, fingerprint, pointer, size, .. } = exit.values;
        let got = match exit.function {
            Function::urIPCGetMemHandleExp => {
                let (data, data_size, fingerprint) = (data.filter(|data| *data != 0)?, data_size?, fingerprint?);
                Some(Got { data, data_size, fingerprint, memory: pointer.zip(size) })
            }
            Function::urIPCPutMemHandleExp => None,
            _ => return None,
        };
        exit.result.is_success().then_some(Self { call: exit.call, tid: exit.tid, time: exit.time, got })
    }

    /// The record of the call, with all values that a get or a put has.
    pub fn record(&self) -> Exit {
        let Self { call, tid, time, .. } = *self;
        let (function, values) = (function(self.got.is_some()), self.values());
        Exit { function, call, tid, time, result: UrResult::SUCCESS, values }
    }

    fn values(&self) -> Values {
        let Some(Got { data, data_size, fingerprint, memory }) = self.got else { return Values::NONE };
        let (pointer, size) = memory.unzip();
        let (data, data_size, fingerprint) = (Some(data), Some(data_size), Some(fingerprint));
        Values { data, data_size, fingerprint, pointer, size, ..Values::NONE }
    }

    /// When the call returned.
    #[inline]
    pub const fn time(&self) -> Nanos {
        self.time
    }

    /// The thread that has made the call.
    #[inline]
    pub const fn tid(&self) -> u32 {
        self.tid
    }

    /// How long the call took that began so, in nanoseconds.
    #[inline]
    pub(super) const fn took(&self, call: &UsualCall) -> u64 {
        self.time.0.saturating_sub(call.time.0)
    }
}

const fn function(gets: bool) -> Function {
    if gets { Function::urIPCGetMemHandleExp } else { Function::urIPCPutMemHandleExp }
}

/// A get that returns what it has returned before.
struct Again {
    /// The size of the memory.
    size: Option<u64>,
    export: ExportId,
    handle: Handle,
}

impl Tracker {
    /// A call begins. False if it is not a usual one: then nothing has moved, and [`Tracker::enter`] is to be called.
    #[inline]
    pub fn enter_usual(&mut self, who: ProcessId, begins: &Begins, facts: &(impl FactConsumer + ?Sized)) -> bool {
        if self.has_denied || !passes_over(facts) {
            return false;
        }
        self.enter_repeat(who, begins) || self.enter_other(who, begins)
    }

    /// The same of one that is not the next one of a pair that comes again, as far as is known.
    #[inline(never)]
    fn enter_other(&mut self, who: ProcessId, begins: &Begins) -> bool {
        if self.expect_repeat(who, begins) && self.enter_repeat(who, begins) {
            return true;
        }
        let Some(state) = self.states.get_mut(who.0 as usize) else { return false };
        if !state.pending.has_room_for(begins.call) {
            return false;
        }
        let of = if begins.gets { get(state, begins) } else { put(state, &mut self.exports, who, begins) };
        let Some((serial, slot)) = of else { return false };
        state.pending.add_usual(begins.usual(serial, slot));
        state.ipc_calls += 1;
        self.ipc_calls += 1;
        true
    }

    /// A call returns. False if it did not begin as a usual one, or is none any more: then nothing has moved, and [`Tracker::exit`] is to
    /// be called.
    #[inline]
    pub fn exit_usual(&mut self, who: ProcessId, returns: &Returns, facts: &(impl FactConsumer + ?Sized)) -> bool {
        if self.has_denied || !passes_over(facts) {
            return false;
        }
        self.exit_repeat(who, returns) || self.exit_other(who, returns)
    }

    /// The same of one that is not the next one of a pair that comes again.
    #[inline(never)]
    fn exit_other(&mut self, who: ProcessId, returns: &Returns) -> bool {
        self.repeats.forget();
        let Some(state) = self.states.get_mut(who.0 as usize) else { return false };
        match &returns.got {
            Some(got) => get_returns(state, &mut self.exports, &mut self.serial, who, returns, got),
            None => put_returns(state, &mut self.exports, &mut self.repeats, who, returns),
        }
    }
}

/// A get returns; see [`Tracker::exit_usual`]. A function of its own, as for a put, so that each has the registers for what it needs.
#[inline(never)]
fn get_returns(
    state: &mut ProcessState,
    exports: &mut Exports,
    serials: &mut Serial,
    who: ProcessId,
    returns: &Returns,
    got: &Got,
) -> bool {
    let Some((index, call)) = state.pending.usual(returns.call).filter(|(_, call)| call.gets) else { return false };
    let call = *call;
    let Some(again) = again(state, exports, who, &call, got) else { return false };
    let Again { size, export, handle } = again;
    let got_at = ends(state, index, &call, who, returns);
    *serials += 1;
    exports.get_again(export, got_at, returns.took(&call));
    if let Some(memory) = state.allocations.at_mut(call.slot) {
        memory.handles += 1;
    }
    state.tombstones.forget(handle);
    let (life, of) = ((*serials, got_at), (Some(call.subject), size, call.context));
    let bytes = (Some(got.fingerprint), Some(export));
    let data = || handles::new_data(life, of, bytes, (Some(call.serial), Some(call.slot)));
    state.handles.add_in_place(handle, data);
    true
}

/// A put returns; see [`Tracker::exit_usual`].
#[inline(never)]
fn put_returns(
    state: &mut ProcessState,
    exports: &mut Exports,
    repeats: &mut Repeats,
    who: ProcessId,
    returns: &Returns,
) -> bool {
    let Some((index, call)) = state.pending.usual(returns.call).filter(|(_, call)| !call.gets) else { return false };
    let call = *call;
    let Some((handle, known)) = state.handles.at(call.slot) else { return false };
    if handle.value != call.subject || known.serial != call.serial || known.state != State::Dying {
        return false;
    }
    let HandleData { born, size, fingerprint, export, pointer, slot, context, .. } = *known;
    let died = ends(state, index, &call, who, returns);
    if let Some(export) = export {
        exports.spend(export, returns.took(&call));
    }
    state.handles.clear(call.slot);
    let tombstone =
        state.tombstones.add_in_place(handle, || Tombstone { born, died, size, fingerprint, excused: false });
    if let (Some(pointer), Some(memory), Some(fingerprint), Some(export)) = (pointer, slot, fingerprint, export) {
        repeats.has_put(Pair { who, pointer, memory, context, data: handle.value, fingerprint, export, tombstone });
    }
    true
}

/// A usual call is over. Where it began.
#[expect(clippy::inline_always, reason = "it is a part of all of its callers")]
#[inline(always)]
pub(super) fn ends(
    state: &mut ProcessState,
    index: usize,
    call: &UsualCall,
    who: ProcessId,
    returns: &Returns,
) -> KeptPlace {
    state.pending.remove_usual(index);
    state.durations.note(call.function(), call.time, returns.time, || call.place(who));
    state.tombstones.returned(returns.time);
    KeptPlace::of(call.place(who))
}

/// Whether nobody wants facts of usual calls.
#[inline]
fn passes_over(facts: &(impl FactConsumer + ?Sized)) -> bool {
    let wanted = [FactKind::PartUsualGet, FactKind::PartPuttingUsm, FactKind::PartReturnedOther, FactKind::Put];
    !wanted.into_iter().any(|kind| facts.wants(kind))
}

/// A get begins of memory that may be exported.
#[inline]
fn get(state: &ProcessState, begins: &Begins) -> Option<(Serial, Slot)> {
    let (pointer, context) = (begins.subject, begins.context);
    let slot = state.allocations.find(pointer)?;
    let (_, memory) = state.allocations.at(slot)?;
    may_be_exported(memory, context).then_some((memory.serial, slot))
}

/// Whether memory may be exported in that context.
#[inline]
pub(super) fn may_be_exported(memory: &Allocation, context: Option<u64>) -> bool {
    memory.freed.is_none() && is_fit(memory, context)
}

/// Whether memory is what a get in that context should be of, as far as is known.
#[inline]
fn is_fit(memory: &Allocation, context: Option<u64>) -> bool {
    let in_other = memory.requested.context.zip(context).is_some_and(|(own, given)| own != given);
    !in_other && memory.requested.usm.is_none_or(|usm| usm == UsmType::Device)
}

/// A put begins of what this process has got.
#[inline]
fn put(state: &mut ProcessState, exports: &mut Exports, who: ProcessId, begins: &Begins) -> Option<(Serial, Slot)> {
    let data = begins.subject;
    let handle = Handle { kind: Kind::MemHandle, value: data };
    let slot = state.handles.find(handle)?;
    let (_, known) = state.handles.at(slot)?;
    if data == 0 || known.state != State::Alive || known.gets != 1 {
        return None;
    }
    let serial = known.serial;
    handles::put_at(state, exports, begins.usual(serial, slot).place(who), handle, slot)?;
    Some((serial, slot))
}

/// What a get has returned, if that is what a get of the same memory has returned before, and nothing else is to be said of it.
#[inline]
fn again(state: &ProcessState, exports: &Exports, who: ProcessId, call: &UsualCall, got: &Got) -> Option<Again> {
    let (base, memory) = state.allocations.at(call.slot)?;
    let is_it = call.subject == base && memory.serial == call.serial;
    let is_known = is_it && memory.freed.is_none() && memory.born.is_some();
    if !is_known || memory.handles + 1 == Exports::MANY || state.noted_size != Some(got.data_size) {
        return None;
    }
    if !got.is_within(base, memory) {
        return None;
    }
    let id = *memory.exports.last()?;
    let export = exports.get(id)?;
    let key = (state.process.host, got.fingerprint);
    let is_latest = export.is_latest(key, (who, Kind::MemHandle, Some(call.serial)));
    let is_often = export.handles == 0 && export.again + 1 == Exports::OFTEN;
    let handle = Handle { kind: Kind::MemHandle, value: got.data };
    let is_again = is_latest && !is_often && !state.handles.contains(handle);
    is_again.then_some(Again { size: memory.requested.size, export: id, handle })
}
