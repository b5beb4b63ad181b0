//! What is handed to opens: data of another size than any get gave, of a producer that may not be looked into, on a device
//! that shares nothing, or of nobody who is traced.
//!
//! Only what goes wrong, and what nobody traced has exported, comes here; all else costs one comparison.

use urscope_schema::{
    api::{Effect, UrResult, demand::IPC},
    call::{Enter, Exit},
    handle::{Handle, Kind},
};

use super::{
    ProcessId, Tracker,
    fact::{Opened, What},
    opens,
    process_state::{Operation, PendingCall, ProcessState},
    rights::Barrier,
};
use crate::{
    catalog::When,
    finding::{Finding, Place},
};

/// How many places of handle data are remembered of a process.
const RECEIVED: usize = 1 << 16;

/// What is answered whatever the bytes are: `UNINITIALIZED`, `OUT_OF_HOST_MEMORY`, `OUT_OF_RESOURCES`, `UNSUPPORTED_FEATURE`, a null, or
/// success without a result, which is told as what it is.
const SAYS_NOTHING: [UrResult; 7] =
    [UrResult(37), UrResult(38), UrResult(40), UrResult(44), UrResult(46), UrResult(48), UrResult::SUCCESS];

/// How many sizes are told apart: one for each kind, adapter and host.
const SIZES: usize = 64;

/// `UR_RESULT_ERROR_INVALID_VALUE`: what is answered to handle data whose size is not that of its kind.
const INVALID_VALUE: UrResult = UrResult(4);

/// What is answered where the kernel refuses to hand out a descriptor: `INVALID_OPERATION`, `OUT_OF_DEVICE_MEMORY`,
/// `INVALID_ARGUMENT`, or success without a result.
const KERNEL_REFUSED: [UrResult; 4] = [UrResult(1), UrResult(39), UrResult(45), UrResult::SUCCESS];

/// The size that gets gave of a kind, on a host.
#[derive(Clone, Copy, Debug)]
struct Given {
    host: u64,
    kind: Kind,
    size: u64,
    got: Place,
}

/// The sizes of handle data that gets have handed out.
#[derive(Debug, Default)]
pub(crate) struct Sizes(Vec<Given>);

impl Sizes {
    fn of(&self, host: u64, kind: Kind) -> impl Iterator<Item = &Given> {
        self.0.iter().filter(move |given| (given.host, given.kind) == (host, kind))
    }

    fn note(&mut self, given: Given) {
        if self.of(given.host, given.kind).all(|known| known.size != given.size) && self.0.len() < SIZES {
            self.0.push(given);
        }
    }
}

/// Handle data of a size that no get gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missized {
    pub(crate) handle: Handle,
    pub(crate) size: u64,
    /// A size that a get gave of this kind, and that get.
    pub(crate) given: u64,
    pub(crate) got: Place,
}

/// Handle data of a living object whose producer may not be looked into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) handle: Handle,
    pub(crate) got: Place,
    pub(crate) result: UrResult,
    pub(crate) barrier: Barrier,
    pub(crate) fingerprint: u64,
}

/// A device that has said that it cannot share a kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) device: u64,
    pub(crate) kind: Kind,
    pub(crate) asked: Place,
}

/// Opens of bytes that no traced get handed out, in one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownHandle {
    /// The first of them, and what it was handed.
    pub(crate) place: Place,
    pub(crate) handle: Handle,
    pub(crate) fingerprint: u64,
    pub(crate) opened: Opened,
    pub(crate) times: u64,
}

/// Those that succeeded, and those that did not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnknownHandles {
    opened: Option<UnknownHandle>,
    refused: Option<UnknownHandle>,
}

impl UnknownHandles {
    fn add(&mut self, unknown: UnknownHandle) {
        let place = if unknown.opened == Opened::Well { &mut self.opened } else { &mut self.refused };
        match place {
            Some(known) => known.times += 1,
            None => *place = Some(unknown),
        }
    }
}

/// An open begins: where its data lie, if they are known.
pub(super) fn note(life: &mut ProcessState, operation: &Operation) {
    if let Operation::Open { export: Some(_), data: Some(data), .. } = operation
        && life.received.len() < RECEIVED
    {
        life.received.insert(*data);
    }
}

/// The device that a call which begins is to share something on, if that has said that it cannot.
pub(super) fn denied(life: &ProcessState, enter: &Enter) -> Option<Denied> {
    if life.denied.is_empty() {
        return None;
    }
    let values = &enter.values;
    let (kind, device) = match enter.function.effect() {
        Effect::Makes(Kind::MemHandle) => (Kind::Usm, life.allocation_at(values.pointer?)?.1.device),
        Effect::Makes(Kind::Mapping) => (Kind::Usm, values.device),
        Effect::Makes(kind @ (Kind::PhysicalMem | Kind::Event)) => {
            let shared = enter.function.is_ipc() || values.flags.is_some_and(|flags| flags & IPC != 0);
            (kind, values.device.filter(|_| shared))
        }
        _ => return None,
    };
    life.denied.iter().find(|denied| denied.kind == kind && Some(denied.device) == device).copied()
}

/// A device has said whether it can share a kind of object.
pub(super) fn answered(life: &mut ProcessState, new: Denied, value: Option<u64>) {
    let known = life.denied.iter().position(|denied| (denied.kind, denied.device) == (new.kind, new.device));
    match (value, known) {
        (Some(0), None) => life.denied.push(new),
        (Some(1..), Some(known)) => {
            life.denied.swap_remove(known);
        }
        _ => {}
    }
}

impl Tracker {
    /// Looks at what became of a call that was to make something.
    pub(super) fn look_at_outcome(&self, pending: &PendingCall, exit: &Exit, opened: Opened, found: &mut Vec<Finding>) {
        if let Some(denied) = &pending.denied {
            self.report(When::Exit, pending.place, What::Denied(denied, opened), found);
        }
        if let (Operation::Open { .. }, Opened::Not(result)) = (&pending.operation, opened) {
            if let Some(missized) = self.missized(pending, exit, result) {
                self.report(When::Exit, pending.place, What::Missized(&missized), found);
            }
            if let Some(refused) = self.refused(pending, exit, result) {
                self.report(When::Exit, pending.place, What::Refused(&refused), found);
            }
        }
    }

    fn missized(&self, pending: &PendingCall, exit: &Exit, result: UrResult) -> Option<Missized> {
        let Operation::Open { size, data, .. } = &pending.operation else { return None };
        let (size, kind) = ((*size)?, opens(exit.function)?);
        let host = self.process(pending.place.process)?.host;
        if result != INVALID_VALUE || self.sizes.of(host, kind).any(|given| given.size == size) {
            return None;
        }
        let given = self.sizes.of(host, kind).next()?;
        let handle = Handle { kind, value: data.unwrap_or_default() };
        Some(Missized { handle, size, given: given.size, got: given.got })
    }

    fn refused(&self, pending: &PendingCall, exit: &Exit, result: UrResult) -> Option<Refused> {
        let Operation::Open { export: Some(id), data, .. } = &pending.operation else { return None };
        let (export, kind) = (self.exports.get(*id)?, opens(exit.function)?);
        let (producer, consumer) = (self.life(export.got.process)?, self.life(pending.place.process)?);
        let alive = match kind {
            Kind::MemHandle => export.subject.serial.is_none_or(|serial| producer.allocated.contains(&serial)),
            _ => true,
        };
        let is_fetched =
            export.got.process != pending.place.process && export.handles > 0 && alive && producer.ended.is_none();
        let barrier = consumer.process.rights.barrier(&producer.process.rights)?;
        let handle = Handle { kind, value: data.unwrap_or_default() };
        let fingerprint = export.fingerprint();
        (is_fetched && KERNEL_REFUSED.contains(&result)).then_some(Refused {
            handle,
            got: export.got,
            result,
            barrier,
            fingerprint,
        })
    }

    /// Notes the size that a get gave, and an open of bytes that nobody traced has exported. It is called before the call has
    /// moved the tracker.
    pub(super) fn receive(&mut self, who: ProcessId, exit: &Exit, opened: Opened) {
        if let (Effect::Makes(kind), Opened::Well, Some(size)) = (exit.function.effect(), opened, exit.values.data_size)
            && kind.shares().is_some()
            && let Some(life) = self.life(who)
            && let Some(PendingCall { place, .. }) = life.pending.get(&exit.call)
        {
            let given = Given { host: life.process.host, kind, size, got: *place };
            self.sizes.note(given);
        }
        if let Some(unknown) = self.unknown(who, exit, opened)
            && let Some(life) = self.life_mut(who)
        {
            life.strangers.add(unknown);
        }
    }

    fn unknown(&self, who: ProcessId, exit: &Exit, opened: Opened) -> Option<UnknownHandle> {
        let kind = opens(exit.function)?;
        let life = self.life(who)?;
        let pending = life.pending.get(&exit.call)?;
        let PendingCall { place, operation, .. } = pending;
        let Operation::Open { export: None, fingerprint: Some(fingerprint), data, .. } = operation else { return None };
        if self.export_of(who, Some(*fingerprint)).is_some() {
            return None;
        }
        if let Opened::Not(result) = opened
            && (SAYS_NOTHING.contains(&result) || self.missized(pending, exit, result).is_some())
        {
            return None;
        }
        // An adapter may have written into known bytes, also for another thread that opens the same ones.
        if opened == Opened::Well && data.is_some_and(|data| life.received.contains(&data)) {
            return None;
        }
        let handle = Handle { kind, value: data.unwrap_or_default() };
        Some(UnknownHandle { place: *place, handle, fingerprint: *fingerprint, opened, times: 1 })
    }

    /// What was opened that nobody traced has exported. Where calls are missing or exports are forgotten, it may have been got.
    pub(super) fn look_at_strangers(&self, found: &mut Vec<Finding>) {
        if self.has_gaps || self.exports.have_forgotten() {
            return;
        }
        for UnknownHandles { opened, refused } in self.lives.iter().map(|life| &life.strangers) {
            for unknown in [opened, refused].into_iter().flatten() {
                self.report(When::Run, unknown.place, What::UnknownHandle(unknown), found);
            }
        }
    }
}
