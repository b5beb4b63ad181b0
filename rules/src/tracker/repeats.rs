//! Pairs of a get and a put that come again and again: gets of one piece of memory that return the same handle data, each put before the next.
//!
//! Of such a pair it is known where all that it moves lies, and that nothing is unusual about it. So it takes a fraction of the steps of
//! other [usual](super::usual) calls, and moves the tracker as they do. What is known holds as long as no other call and nothing else moves what it is
//! about: [`Repeats::forget`] is to be called there.

use std::fmt;

use urscope_schema::handle::{Handle, Kind};

use super::{
    ProcessId, Tracker,
    exports::{Export, ExportId, Exports},
    kept::KeptPlace,
    process_state::ProcessState,
    records::{HandleData, Serial, Tombstone},
    table::Slot,
    transitions::handles,
    usual::{self, Begins, Got, Returns},
};
use crate::lifecycle::State;

/// The latest pair.
#[derive(Clone, Default)]
pub(super) struct Repeats(Latest);

/// What it says follows from the rest of the tracker.
impl fmt::Debug for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeats").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Default)]
enum Latest {
    /// There is none.
    #[default]
    None,
    /// It was put in the usual way. Whether it may come again is not known.
    Put(Pair),
    /// This is what comes next if it comes again.
    Next(Step, Pair),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    GetBegins,
    GetReturns,
    /// From the return of the get to that of the put, the handle data lies in this slot of the handles.
    PutBegins(Slot),
    PutReturns(Slot),
}

/// What is got and put, and where that lies.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) who: ProcessId,
    /// Where the memory begins, and where it lies among the allocations.
    pub(super) pointer: u64,
    pub(super) memory: Slot,
    /// The one that it is got in.
    pub(super) context: Option<u64>,
    /// The address of the handle data.
    pub(super) data: u64,
    pub(super) fingerprint: u64,
    pub(super) export: ExportId,
    /// Where its tombstone lies, the latest of all.
    pub(super) tombstone: Slot,
}

impl Pair {
    const fn handle(&self) -> Handle {
        Handle { kind: Kind::MemHandle, value: self.data }
    }

    /// Whether a get of this memory that begins now, and returns this handle data, is a usual one, right behind the put: what [`usual`] looks at, but for
    /// what changes with each get.
    fn can_be_got(&self, state: &ProcessState, exports: &Exports) -> bool {
        let Some((base, memory)) = state.allocations.at(self.memory) else { return false };
        let is_known = base == self.pointer && memory.born.is_some() && usual::may_be_exported(memory, self.context);
        let key = (state.process.host, self.fingerprint);
        let of = (self.who, Kind::MemHandle, Some(memory.serial));
        let is_latest = |export: &Export| export.handles == 0 && export.is_latest(key, of);
        is_known
            && memory.exports.last() == Some(&self.export)
            && exports.get(self.export).is_some_and(is_latest)
            && state.pending.is_empty()
    }
}

impl Repeats {
    /// Something else moves what a pair is about.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.0 = Latest::None;
    }

    /// It was put in the usual way.
    #[inline]
    pub(super) fn has_put(&mut self, pair: Pair) {
        self.0 = Latest::Put(pair);
    }
}

impl Tracker {
    /// A call begins that is not the next one of a pair. Whether it is the get of the latest one, which comes again.
    #[inline]
    pub(super) fn expect_repeat(&mut self, who: ProcessId, begins: &Begins) -> bool {
        let Latest::Put(pair) = std::mem::take(&mut self.repeats.0) else { return false };
        let is_of_it = (pair.who, pair.pointer, pair.context) == (who, begins.subject, begins.context);
        let state = self.states.get(who.0 as usize).filter(|_| begins.gets && is_of_it);
        let comes_again = state.is_some_and(|state| pair.can_be_got(state, &self.exports));
        if comes_again {
            self.repeats.0 = Latest::Next(Step::GetBegins, pair);
        }
        comes_again
    }

    /// A usual call begins. False if it is not the next one of a pair: then nothing has moved.
    #[inline]
    pub(super) fn enter_repeat(&mut self, who: ProcessId, begins: &Begins) -> bool {
        let Latest::Next(step, pair) = &mut self.repeats.0 else { return false };
        let Some(state) = self.states.get_mut(pair.who.0 as usize).filter(|_| pair.who == who) else { return false };
        let (serial, slot) = match step {
            Step::GetBegins if begins.gets && (begins.subject, begins.context) == (pair.pointer, pair.context) => {
                let Some((_, memory)) = state.allocations.at(pair.memory) else { return false };
                *step = Step::GetReturns;
                (memory.serial, pair.memory)
            }
            Step::PutBegins(handle) if !begins.gets && begins.subject == pair.data => {
                let handle = *handle;
                let Some(data) = state.handles.at_mut(handle) else { return false };
                data.state = State::Dying;
                let serial = data.serial;
                if let Some(memory) = state.allocations.at_mut(pair.memory) {
                    memory.handles = memory.handles.saturating_sub(1);
                }
                let put = begins.usual(serial, handle).place(who);
                self.exports.put_only(pair.export, KeptPlace::of(put));
                *step = Step::PutReturns(handle);
                (serial, handle)
            }
            _ => return false,
        };
        state.pending.add_usual(begins.usual(serial, slot));
        state.ipc_calls += 1;
        self.ipc_calls += 1;
        true
    }

    /// A usual call returns. False if it is not the next one of a pair: then nothing has moved.
    #[inline]
    pub(super) fn exit_repeat(&mut self, who: ProcessId, returns: &Returns) -> bool {
        let Latest::Next(step, pair) = &mut self.repeats.0 else { return false };
        let Some(state) = self.states.get_mut(pair.who.0 as usize).filter(|_| pair.who == who) else { return false };
        let next = match (&*step, &returns.got) {
            (Step::GetReturns, Some(got)) => {
                get_returns(state, &mut self.exports, &mut self.serial, pair, returns, got).map(Step::PutBegins)
            }
            (Step::PutReturns(handle), None) => {
                put_returns(state, &mut self.exports, (pair, *handle), returns).then_some(Step::GetBegins)
            }
            _ => return false,
        };
        match next {
            Some(next) => *step = next,
            None => self.repeats.forget(),
        }
        next.is_some()
    }
}

#[inline(never)]
fn get_returns(
    state: &mut ProcessState,
    exports: &mut Exports,
    serials: &mut Serial,
    pair: &Pair,
    returns: &Returns,
    got: &Got,
) -> Option<Slot> {
    let call = state.pending.only_usual(returns.call)?;
    let is_same = (got.data, got.fingerprint) == (pair.data, pair.fingerprint);
    let memory = state.allocations.at_mut(pair.memory)?;
    // How many handles of the memory are not put is as it was the last time, so that is not looked at.
    if !is_same || state.noted_size != Some(got.data_size) || !got.is_within(pair.pointer, memory) {
        return None;
    }
    let (got_at, took) = (KeptPlace::of(call.place(pair.who)), returns.took(&call));
    if !exports.get_again_unless_often(pair.export, got_at, took) {
        return None;
    }
    memory.handles += 1;
    let (size, exported) = (memory.requested.size, memory.serial);
    usual::ends(state, 0, &call, pair.who, returns);
    *serials += 1;
    state.tombstones.forget_at(pair.tombstone);
    let (life, of) = ((*serials, got_at), (Some(pair.pointer), size, pair.context));
    let bytes = (Some(pair.fingerprint), Some(pair.export));
    let data = || handles::new_data(life, of, bytes, (Some(exported), Some(pair.memory)));
    Some(state.handles.add_in_place(pair.handle(), data))
}

#[inline(never)]
fn put_returns(
    state: &mut ProcessState,
    exports: &mut Exports,
    (pair, handle): (&Pair, Slot),
    returns: &Returns,
) -> bool {
    let Some(call) = state.pending.only_usual(returns.call) else { return false };
    let Some((_, known)) = state.handles.at(handle) else { return false };
    let HandleData { born, size, .. } = *known;
    let died = KeptPlace::of(call.place(pair.who));
    usual::ends(state, 0, &call, pair.who, returns);
    exports.spend(pair.export, returns.took(&call));
    state.handles.clear(handle);
    let fingerprint = Some(pair.fingerprint);
    state.tombstones.renew(pair.tombstone, || Tombstone { born, died, size, fingerprint, excused: false });
    true
}
