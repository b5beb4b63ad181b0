//! What a rule gets to see: one moment, with everything about it already looked up.

use urscope_schema::{
    api::{UrResult, demand::Fault},
    handle::{Handle, Kind},
};

use crate::{
    finding::Place,
    lifecycle::{Event, State, Violation, step},
    tracker::{
        End, Tracker,
        devices::WrongDevice,
        exports::Export,
        ledger::Growth,
        pace::Outlier,
        received::{Denied, Missized, Refused, UnknownHandle},
        records::{Allocation, HandleData, Mapping, Object, Serial, Tombstone},
        slabs::Exposed,
    },
};

/// A moment at which rules check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact<'w> {
    /// For the names of processes.
    pub(crate) tracker: &'w Tracker,
    /// Where we are: the call, or the end of the process.
    pub(crate) at: Place,
    /// What there is to see.
    pub(crate) what: What<'w>,
}

/// What there is to see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'w> {
    /// A call begins with an argument that its function forbids.
    Argument(Fault),
    /// A call begins that gets handle data for an object.
    Exporting(Handle, &'w Object),
    /// A call begins that gets handle data for an address in the mapping that begins at that address.
    ExportingMapped(u64, &'w Mapping),
    /// A call has returned that took an address for memory of this process, where none is any more.
    Dangling(&'w DanglingUse, Opened),
    /// A call has answered success, and has not made the object that it should have made.
    Unanswered(Kind),
    /// A call begins that ends an object, or takes away a reference to it.
    Ending(Ending<'w>),
    /// A call begins that puts handle data whose descriptor a put of equal bytes has closed.
    ClosedAlready { handle: Handle, got: &'w HandleData, closed: Place },
    /// A call begins with an object that it takes for one of another kind.
    OtherKind(Confusion),
    /// Handle data has been opened, or was refused, after its last put or the free of its memory.
    Stale(&'w Stale, Opened),
    /// Memory has been freed, or physical memory or an event released for the last time.
    Freed(&'w Freed),
    /// Handle data was left when a process ended.
    LeftHandle { handle: Handle, got: &'w HandleData, left: Left },
    /// A mapping was left when its process ended or its context was released.
    LeftMapping { pointer: u64, mapped: &'w Mapping, left: Left },
    /// Opened physical memory or an opened event was left when its process ended or its context was released.
    LeftObject { handle: Handle, object: &'w Object, left: Left },
    /// A process has ended that had opened handle data of its own.
    OpenedHere(&'w OpenedHere),
    /// A process has ended whose handle data showed other memory of it, too.
    Exposed(&'w Exposed),
    /// A process has ended while others had its memory open.
    Gone(&'w Held, Left),
    /// The run is over, and nobody has tried to open what a process exported.
    Unopened(&'w Unopened),
    /// The run is over, and a wait was never answered, whose event is of a process that has ended.
    Waiting(&'w Waiting, End),
    /// An open was refused whose handle data have a size that no get gave.
    Missized(&'w Missized),
    /// An open of living handle data was refused whose producer may not be looked into.
    Refused(&'w Refused),
    /// A call has tried to share something on a device that had said that it cannot.
    Denied(&'w Denied, Opened),
    /// A call has returned that names another device than it should.
    WrongDevice(&'w WrongDevice, Opened),
    /// Equal handle data was got and put over and over.
    Churned(&'w Export),
    /// A process has ended in which some calls took far longer than others of their function.
    Outlier(Outlier),
    /// A process has ended whose descriptors became more and more.
    Growth(Growth),
    /// A process has ended of which calls are missing.
    Missing(Missing),
    /// The run is over, and bytes were handed to opens that no traced get handed out.
    UnknownHandle(&'w UnknownHandle),
    /// The run is over, and no IPC call was in it.
    NoCalls,
}

/// The object that a call is about to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'w> {
    /// What the call takes it for.
    pub(crate) object: Handle,
    /// In which context.
    pub(crate) context: Option<u64>,
    /// Its state by its address.
    pub(crate) state: State,
    /// What it is.
    pub(crate) target: Target<'w>,
}

impl Ending<'_> {
    /// What the life machine says to a call that ends a `kind`.
    pub(crate) fn violation(&self, kind: Kind) -> Option<Violation> {
        if self.object.kind == kind { step(self.state, Event::Ending).violation } else { None }
    }
}

/// An object that is taken for one of another kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confusion {
    /// What the call takes it for.
    pub(crate) taken_for: Kind,
    /// What it is: an object of this process, or the handle data that was handed to an open.
    pub(crate) is: Handle,
    /// The call that made it.
    pub(crate) born: Place,
    /// The fingerprint of the handle data that was handed to an open.
    pub(crate) fingerprint: Option<u64>,
}

/// An address at which there was a mapping, or USM of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DanglingUse {
    pub(crate) pointer: u64,
    /// What was there.
    pub(crate) was: Handle,
    /// The close or the free that ended it.
    pub(crate) died: Place,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
}

/// Handle data that is opened when it is worth nothing any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale {
    /// The copy that was handed to the open.
    pub(crate) handle: Handle,
    pub(crate) got: Place,
    /// Why that is so.
    pub(crate) over: Over,
    /// The exported address, or object.
    pub(crate) value: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: u64,
}

/// Why handle data is worth nothing any more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    /// Its last put.
    Put(Place),
    /// The free of its memory.
    Freed(Place),
    /// The same, and the call that allocated what is at its address now.
    Reborn(Place, Option<Place>),
}

/// What became of a get, an open or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// It made what it should have made.
    Well,
    /// It was refused, or made nothing.
    Not(UrResult),
}

/// Opens of handle data in the process that got it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedHere {
    /// The first of them, with its address.
    pub(crate) opened: Place,
    pub(crate) pointer: u64,
    /// The get of its handle data.
    pub(crate) got: Place,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: u64,
    /// How many there were.
    pub(crate) count: u64,
}

/// Memory that others have open when its process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) what: Handle,
    pub(crate) serial: Serial,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: u64,
    pub(crate) holders: u64,
    /// The open of one of them, with its address there.
    pub(crate) opened: Place,
    pub(crate) pointer: u64,
}

/// Handle data that nobody has tried to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unopened {
    pub(crate) got: Place,
    /// The kind of the handle data, and what is exported.
    pub(crate) kind: Kind,
    pub(crate) value: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: u64,
    /// How many lives that are exported at the same place this stands for.
    pub(crate) count: u64,
}

/// A wait that had not returned when its process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) wait: Place,
    pub(crate) event: Handle,
    pub(crate) fingerprint: Option<u64>,
    /// The get of its handle data, in the process that made the event.
    pub(crate) source: Place,
    /// Whether that process had ended when the wait began.
    pub(crate) late: bool,
}

/// What an address stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'w> {
    /// Handle data.
    Handle(&'w HandleData),
    /// A mapping.
    Mapping(&'w Mapping),
    /// The inside of the open mapping that begins at that address.
    Inside(u64, &'w Mapping),
    /// Something that was ended.
    Ended(&'w Tombstone),
    /// Physical memory or an event.
    Object(&'w Object),
    /// USM of this process.
    Allocation(&'w Allocation),
    /// Nothing that we know.
    Nothing,
}

/// Memory that is being freed, or an object whose last reference is being released, with what hung on it when that began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub(crate) what: Handle,
    pub(crate) serial: Serial,
    pub(crate) size: Option<u64>,
    pub(crate) fingerprint: Option<u64>,
    /// How many of its handles were not put.
    pub(crate) handles: u64,
    /// The last get of one that was not put.
    pub(crate) got: Option<Place>,
    /// How many mappings of it were open.
    pub(crate) holders: u64,
    /// The open of one of them, of another process if there is one, with its address there.
    pub(crate) holder: Option<(Place, u64)>,
}

/// What is missing in a trace; nothing of both where it is closed and has no footer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Records of calls that could not be written.
    pub(crate) lost: u64,
    /// Lines that could not be used.
    pub(crate) lines: u64,
}

/// Why something is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The process ended in order.
    Exited,
    /// The process was killed.
    Killed,
    /// The trace stops, or calls are missing.
    Incomplete,
    /// The last reference to its context was released.
    ContextReleased,
}

impl Freed {
    /// With nothing hanging on it.
    pub(crate) fn new(what: Handle, serial: Serial, size: Option<u64>) -> Self {
        Self { what, serial, size, fingerprint: None, handles: 0, got: None, holders: 0, holder: None }
    }
}
