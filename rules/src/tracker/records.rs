//! The records that the tracker keeps of live objects.
//!
//! Plain data: the transitions change it, facts refer to it.

use std::num::NonZeroU64;

use smallvec::SmallVec;
use urscope_schema::api::{Effect, Function, ResultCode};
use urscope_schema::{call::Nanos, handle::Handle, operation::Requested};

use crate::{lifecycle::State, place::Place};

/// Distinguishes the lives at one address: numbers that rise with each birth, never the same twice in a tracker.
pub type Serial = u64;

/// One life of handle data, of a mapping or of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// What it is known by, which something else may have before and after it.
    pub handle: Handle,
    /// Which life of that.
    pub serial: Serial,
}

/// The number of an export, never the same twice in a tracker. Later exports have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExportId {
    pub(super) number: NonZeroU64,
    /// Its place in the tracker, which a later export may take.
    pub(super) place: u32,
}

impl ExportId {
    /// The number.
    pub const fn number(self) -> u64 {
        self.number.get()
    }
}

/// Handle data that was got and not put.
#[derive(Clone, Debug)]
pub struct HandleData {
    /// Which life of its address.
    pub serial: Serial,
    /// Its state.
    pub state: State,
    /// The get.
    pub born: Place,
    /// The exported address or object; unknown if the enter of the get is missing.
    pub pointer: Option<u64>,
    /// The size in bytes that an open maps.
    pub size: Option<u64>,
    /// The fingerprint of its bytes.
    pub fingerprint: Option<u64>,
    /// The export that it belongs to, if its bytes are known.
    pub export: Option<ExportId>,
    /// The exported life. Handle data of memory must be put while it lasts.
    pub exported: Option<Serial>,
    /// The context of the get; for an event, the context of the event.
    pub context: Option<u64>,
    /// The release of the application's last reference to that context. The adapter may keep the context for longer.
    pub context_released: Option<Place>,
    /// It was ended in a wrong way, which was reported: its leak is the same violation.
    pub ended_wrongly: bool,
    /// The number of gets that have returned it and are not put. A Level Zero driver returns the same
    /// descriptor for the same memory.
    pub gets: u64,
}

impl HandleData {
    /// Whether it is a descriptor that a query for properties has exported. Its close is not recorded.
    pub(crate) fn is_descriptor(&self) -> bool {
        matches!(self.born.effect(), Some(Effect::MayExport(_)))
    }
}

/// Opened memory of another process.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Which life of its address.
    pub serial: Serial,
    /// Its state.
    pub state: State,
    /// The opens that are not closed yet, in the order in which they returned.
    pub opens: SmallVec<[Open; 1]>,
    /// How many closes of it have begun and not returned.
    pub closing: u64,
    /// How often this pointer was opened in total.
    pub opened: u64,
    /// How often it was closed.
    pub closed: u64,
    /// When the latest close began.
    pub last_close: Nanos,
    /// The latest close that was refused.
    pub close_refused: Option<Place>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// How many bytes from its pointer on the driver has mapped, according to its handle data; its size if
    /// they do not state that.
    pub extent: Option<u64>,
    /// The fingerprint of the handle data that it was last opened from.
    pub fingerprint: Option<u64>,
    /// An allocation of Level Zero has imported it, so it is freed, not closed.
    pub imported: bool,
    /// The export that it was last opened from.
    pub export: Option<ExportId>,
    /// It was ended in a wrong way, which was reported: its leak is the same violation.
    pub ended_wrongly: bool,
    /// Its opens and closes, if it was opened more than once.
    pub counted: Option<Box<Counted>>,
}

/// The first opens and closes of a mapping that was opened more than once.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// The opens, in the order in which they returned.
    pub opens: SmallVec<[Place; 2]>,
    /// The closes.
    pub closes: SmallVec<[Place; 2]>,
}

impl Counted {
    /// How many opens and closes are kept of a mapping.
    pub const LIMIT: usize = 8;
}

/// One open of a pointer.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Which open.
    pub serial: Serial,
    /// In which context.
    pub context: Option<u64>,
    /// The release of the application's last reference to that context. The adapter may keep the context,
    /// and the mapping, for longer.
    pub context_released: Option<Place>,
    /// The call.
    pub place: Place,
    /// The latest get before it that its handle data came from.
    pub source: Option<Place>,
}

impl Mapping {
    /// A mapping without any data yet.
    pub(super) fn new(serial: Serial) -> Self {
        Self {
            serial,
            state: State::Unknown,
            opens: SmallVec::new(),
            closing: 0,
            opened: 0,
            closed: 0,
            last_close: Nanos(0),
            close_refused: None,
            size: None,
            extent: None,
            fingerprint: None,
            imported: false,
            export: None,
            ended_wrongly: false,
            counted: None,
        }
    }

    /// The first open that is not closed.
    pub fn first_open(&self) -> Option<Place> {
        self.first().map(|open| open.place)
    }

    /// The latest get before that open of which its handle data came.
    pub fn source(&self) -> Option<Place> {
        self.first().and_then(|open| open.source)
    }

    fn first(&self) -> Option<&Open> {
        self.opens.iter().min_by_key(|open| (open.place.time, open.place.call))
    }

    /// Whether the application has released the contexts of all its opens, and no close is under way.
    pub(super) fn went_with_context(&self) -> bool {
        let is_released = |open: &Open| open.context_released.is_some();
        self.closing == 0 && !self.opens.is_empty() && self.opens.iter().all(is_released)
    }

    /// Whether a call at `at` in `context` may be about one of its opens. An unknown context counts as the right one,
    /// and so does that of an open in another interface, which has other handles for the same contexts.
    pub fn is_open_in(&self, context: Option<u64>, at: Place) -> bool {
        let interface = |place: Place| place.function.map(Function::interface);
        let may_be_it =
            |open: &Open| open.context.is_none() || open.context == context || interface(open.place) != interface(at);
        context.is_none() || self.opens.iter().any(may_be_it)
    }

    /// Removes the open that is ended by a close in `context` that began at `time`: the latest open before
    /// that in this context, otherwise the latest one.
    pub(super) fn take(&mut self, context: Option<u64>, time: Nanos) -> Option<Open> {
        let in_context = |open: &Open| open.context == context;
        let before = self.opens.iter().rposition(|open| in_context(open) && open.place.time <= time);
        let index = before.or_else(|| self.opens.iter().rposition(in_context)).or(self.opens.len().checked_sub(1))?;
        Some(self.opens.remove(index))
    }
}

/// The number of commands of a process that are remembered: the latest ones.
pub const MAX_COMMANDS: usize = 1024;

/// The first call of a process that has reported the failure of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The call.
    pub at: Place,
    /// What it returned.
    pub result: ResultCode,
    /// The last commands on shared memory before it, at most three.
    pub commands: Vec<Place>,
}

/// Where a command is: in which queue, and which one it is of all that its process has enqueued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) queue: u64,
    pub(super) number: u64,
}

/// A command of a queue or a command list.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// The call that enqueued or appended it.
    pub place: Place,
    /// The addresses of shared memory that it writes and reads.
    pub addresses: [Option<u64>; 2],
    /// How many bytes at each.
    pub size: u64,
    /// Where it is, unless it is in a command list.
    pub(super) position: Option<Position>,
}

impl Command {
    /// Whether it accesses one of `size` bytes from `start` on.
    pub(super) fn accesses(&self, start: u64, size: u64) -> bool {
        let touches =
            |address: &u64| *address < start.saturating_add(size) && start < address.saturating_add(self.size);
        self.addresses.iter().flatten().any(touches)
    }
}

/// Physical memory, an event or an event pool. It may have been made without the IPC flag: then gets of it are refused.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Which life of its address.
    pub serial: Serial,
    /// Its state.
    pub state: State,
    /// How many references there are.
    pub references: u64,
    /// The call that made or opened it.
    pub born: Place,
    /// Where it comes from.
    pub origin: Origin,
    /// The context it belongs to.
    pub context: Option<u64>,
    /// The release of the application's last reference to that context. The adapter may keep the context for longer.
    pub context_released: Option<Place>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The number of its handles that are not put.
    pub handles: u64,
    /// The last get of it.
    pub got: Option<Place>,
    /// The fingerprint of the handle data it was opened from.
    pub fingerprint: Option<u64>,
    /// The get that this handle data came from.
    pub source: Option<Place>,
    /// The export that it was opened from, or its latest own one.
    pub export: Option<ExportId>,
    /// It was ended in a wrong way, which was reported: its leak is the same violation.
    pub ended_wrongly: bool,
}

impl Object {
    /// Whether it was opened, or handle data was got for it.
    pub(super) fn is_shared(&self) -> bool {
        self.origin == Origin::Imported || self.got.is_some()
    }
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made here with the IPC flag.
    Shareable,
    /// Made here without it.
    Plain,
    /// Opened from handle data.
    Imported,
}

/// A range of addresses that physical memory is mapped at.
#[derive(Clone, Copy, Debug)]
pub struct MappedRange {
    /// The end of the range, exclusive.
    pub end: u64,
    /// The physical memory.
    pub memory: Handle,
    /// Which life of that.
    pub serial: Serial,
    /// The call that mapped it.
    pub place: Place,
    /// It is memory of another process.
    pub imported: bool,
    /// The export that it was opened from.
    pub export: Option<ExportId>,
    /// When a command was first enqueued that accesses it. Kept of memory of other processes only.
    pub first_access: Option<Nanos>,
}

/// Exported physical memory that its process has unmapped, and other memory that it has mapped there since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replaced {
    /// The first address that both were mapped at.
    pub(crate) address: u64,
    /// The unmap of the old memory.
    pub(crate) unmapped: Place,
    /// The map of the other memory.
    pub(crate) mapped: Place,
}

/// A descriptor of physical memory that a get has returned, and that the program is to close.
#[derive(Clone, Copy, Debug)]
pub struct OwnDescriptor {
    /// The latest get that has returned its number.
    pub got: Place,
    /// The physical memory.
    pub memory: Handle,
    /// Which life of that; `None` if its creation was not recorded.
    pub serial: Option<Serial>,
    /// The size of the memory in bytes.
    pub size: Option<u64>,
    /// The release of the last reference to the memory.
    pub released: Option<Place>,
    /// Whether the process, which is about to end, still has it.
    pub is_kept: bool,
}

/// USM. Its allocation may not have been recorded: then it is known from an argument.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Which life of its address.
    pub serial: Serial,
    /// The requested properties. Without a size only the exact pointer is known.
    pub requested: Requested,
    /// The call that allocated it.
    pub born: Option<Place>,
    /// Its free has begun.
    pub dying: bool,
    /// The free that ended it. A freed allocation is kept for a while, so that a later get of it is recognised.
    pub freed: Option<Place>,
    /// This process had got handle data of it when it was freed.
    pub freed_exported: bool,
    /// The number of its handles that are not put.
    pub handles: u64,
    /// Its exports, one for each pointer into it that was exported, in rising order.
    pub exports: SmallVec<[ExportId; 1]>,
    /// The exports of it by forked children, in rising order.
    pub by_children: Vec<ExportId>,
}

impl Allocation {
    /// Whether this process has got handle data of it.
    pub(super) fn is_exported(&self) -> bool {
        !self.exports.is_empty()
    }

    /// Whether the byte at an offset from its start is a part of it.
    pub(super) fn covers(&self, offset: u64) -> bool {
        offset == 0 || self.requested.size.is_some_and(|size| offset < size)
    }

    /// Adds an export. Returns whether it is new.
    pub(super) fn add_export(&mut self, id: ExportId) -> bool {
        match self.exports.binary_search(&id) {
            Ok(_) => false,
            Err(index) => {
                self.exports.insert(index, id);
                true
            }
        }
    }

    /// Adds an export by a forked child; at most [`MAX_CHILD_EXPORTS`] are kept.
    pub(super) fn add_export_of_child(&mut self, id: ExportId) {
        if let Err(index) = self.by_children.binary_search(&id)
            && self.by_children.len() < MAX_CHILD_EXPORTS
        {
            self.by_children.insert(index, id);
        }
    }
}

/// The number of exports by forked children that are kept for one allocation.
const MAX_CHILD_EXPORTS: usize = 4096;

/// A USM pool whose creation was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Which life of its handle.
    pub serial: Serial,
    /// How many references there are.
    pub references: u64,
}

/// A device, as its adapter describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its index among the devices of its platform; none of a sub-device.
    pub index: Option<u32>,
    /// Its name; empty where it is not known.
    pub name: Box<str>,
    /// Its handle in the interface below its adapter. Two handles with the same are one device.
    pub native: Option<u64>,
}

/// A context whose creation was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Which life of its handle.
    pub serial: Serial,
    /// How many references there are.
    pub references: u64,
    /// The call that created it.
    pub born: Place,
    /// Its device, if it has only one.
    pub device: Option<u64>,
    /// Whether it is the context that its device has in the process.
    pub is_primary: bool,
}

/// An object that has ended: distinguishes a second end from the end of an unknown object.
#[derive(Clone, Copy, Debug)]
pub struct Tombstone {
    /// The call that made it.
    pub born: Place,
    /// The call that ended it.
    pub died: Place,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data.
    pub fingerprint: Option<u64>,
    /// It was ended by a wrong call, which was reported: a later end is no new violation.
    pub excused: bool,
}
