//! Lifecycle facts: a small closed set of what can happen to a shared object.
//!
//! The tracker emits a fact for each step in the life of an object that can be shared, in the order of
//! time. Rules, the lifetimes of timelines and statistics, and all other consumers take facts
//! ([`FactConsumer`]); none of them follows calls by itself. The tracker knows none of its consumers.

use urscope_schema::api::{ResultCode, demand::Fault};
use urscope_schema::call::{Executed, Nanos};
use urscope_schema::handle::{Handle, Kind};
use urscope_schema::operation::{Answer, Create, Export, Open};

pub use super::changes::Opened;
pub use super::freeing::{DeadAccess, ForeignUse, Freed, Freeing, InUse, OpenMapping, OutdatedUse, PastEnd};
pub use super::freeing::{StaleEvent, StaleUse, StillMapped};
pub use super::in_flight::{Unordered, UnorderedAccess};
pub use super::observations::{Altered, DanglingUse, Expired, Expiry, KindMismatch, Support};
use super::records::{Allocation, ExportId, HandleData, Life, MappedRange, Mapping, Object, OwnDescriptor, Serial};
pub use super::{fact_kind::FactKind, process::Missing, process_state::Target};
use super::{pending::PendingCall, process::End, state::Tracker};
use crate::lifecycle::{Event, State, Violation, step};
use crate::place::Place;

/// A consumer of facts, in the order of time.
pub trait FactConsumer {
    /// Takes one fact. Its references are valid during this call only.
    fn consume(&mut self, fact: &Fact<'_>);

    /// Whether it consumes facts of a kind. It gets no others.
    fn wants(&self, kind: FactKind) -> bool {
        let _ = kind;
        true
    }
}

/// Drops every fact.
impl FactConsumer for () {
    fn consume(&mut self, _: &Fact<'_>) {}

    fn wants(&self, _: FactKind) -> bool {
        false
    }
}

impl<C: FactConsumer + ?Sized> FactConsumer for &mut C {
    fn consume(&mut self, fact: &Fact<'_>) {
        (**self).consume(fact);
    }

    fn wants(&self, kind: FactKind) -> bool {
        (**self).wants(kind)
    }
}

/// Passes each fact to both, to the first one first.
impl<A: FactConsumer, B: FactConsumer> FactConsumer for (A, B) {
    fn consume(&mut self, fact: &Fact<'_>) {
        self.0.consume(fact);
        self.1.consume(fact);
    }

    fn wants(&self, kind: FactKind) -> bool {
        self.0.wants(kind) || self.1.wants(kind)
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'t> {
    /// The tracker: facts that are emitted when a call begins show it as it was before the call, those of a
    /// return as it is afterwards, unless stated otherwise.
    pub tracker: &'t Tracker,
    /// Where it happened: the enter of the call, or the end of the process.
    pub at: Place,
    /// What happened.
    pub what: What<'t>,
}

/// What happened.
///
/// The facts of one call come in this order: those of its enter, [`What::Returned`] (before the tracker
/// changes), those of its result.
#[derive(Clone, Copy, Debug)]
pub enum What<'t> {
    /// A call begins with an argument that the header lists among the errors of its function.
    InvalidArgument(Fault),
    /// A call begins that gets handle data.
    Exporting(Exporting<'t>),
    /// A call begins that opens handle data.
    Opening(Opening<'t>),
    /// A call begins that allocates or imports memory, or creates physical memory or an event.
    Creating(Create),
    /// A call begins that puts, closes, frees or releases something that it may end in this way.
    Ending(Ending<'t>),
    /// A call begins that puts, closes, frees or releases something that is not alive, that is of another
    /// kind, or that is not ended in this way.
    InvalidEnding(Ending<'t>),
    /// The call that ends a mapping or exported USM, or unmaps shared physical memory, begins, and commands that access
    /// it have not completed, as far as is known.
    InUse(&'t InUse),
    /// A command is enqueued that accesses a mapping of memory which its exporter has freed since it was opened.
    StaleUse(&'t StaleUse),
    /// A command is enqueued that accesses physical memory which its owner has replaced by other memory at the same
    /// address.
    OutdatedUse(&'t OutdatedUse),
    /// It uses an event that its owner has destroyed.
    StaleEvent(&'t StaleEvent),
    /// A command is enqueued that accesses a mapping, in a queue of another context.
    ForeignUse(&'t ForeignUse),
    /// A command is enqueued that begins inside a mapping or exported USM and ends outside of it.
    PastEnd(&'t PastEnd),
    /// A command is enqueued, or executed with its list, that accesses a mapping or exported USM of this process which
    /// has ended.
    DeadAccess(&'t DeadAccess),
    /// A call has returned, with success or an error. The tracker is as it was before.
    Returned(Returned),
    /// A call that should have made an object has not: it failed, or it returned success and no result. The
    /// tracker is as it was before.
    Refused(Refused<'t>),
    /// An open has returned whose handle data had expired when it began. The tracker is as it was before.
    OpenedExpired(&'t Expired, Outcome),
    /// An open has returned, and no get of a traced process has returned its bytes. The tracker is as it was before.
    OpenedUnknown(&'t UnknownHandle),
    /// A call has returned that used an address of memory that this process has freed or closed.
    Dangling(&'t DanglingUse, Outcome),
    /// USM has been allocated, or physical memory or an event has been created here.
    Allocated(Handle),
    /// A get has returned handle data.
    Exported(Exported<'t>),
    /// An open has returned a mapping, physical memory or an event.
    Opened(Opened),
    /// A put has succeeded.
    Put(Put),
    /// A close of a mapping has succeeded: [`Opened::serial`] tells which open it has ended.
    Closed(Life),
    /// USM has been freed, or the last reference to physical memory or an event has been released.
    Freed(&'t Freed),
    /// The application's last reference to the context of USM has been released while it was exported or
    /// open elsewhere.
    ContextReleased(&'t Freed),
    /// A put, close, free or release has failed: the object that it was to end is still alive.
    EndRefused(Handle),
    /// A call has returned an error. No other fact about the call follows. [`Checker`](crate::Checker) passes it on
    /// only if no rule has found anything in the call.
    CallFailed(CallFailed<'t>),
    /// A device has reported whether it can share a kind of object.
    Support(Support),
    /// The device has executed a command, which accessed this memory. The fact is at the call that enqueued it, or
    /// outside calls if that was not recorded, and comes when the command has ended. The memory is unknown if it was
    /// not shared by this process when that began.
    Executed(&'t Executed, Option<Handle>),
    /// A process knows that a command on shared memory has completed, and another process had enqueued one on the same
    /// bytes before: nothing has ordered the two. The fact is at the call that enqueued the second one.
    Unordered(&'t Unordered),
    /// A sample of the open descriptors of a process.
    Descriptors(Descriptors),
    /// Handle data was not put when its process ended.
    LeftHandle(Leftover, Handle, &'t HandleData),
    /// A mapping was not closed when its process ended.
    LeftMapping(Leftover, u64, &'t Mapping),
    /// Imported physical memory was released, and was still mapped when its process ended: at which address.
    LeftRange(Leftover, u64, &'t MappedRange),
    /// A process has ended and not closed the descriptor with this number, although it has released the memory before.
    LeftDescriptor(Leftover, u32, &'t OwnDescriptor),
    /// Opened physical memory or an opened event was not released when its process ended.
    LeftObject(Leftover, Handle, &'t Object),
    /// A process has ended, and the tracker still shows what is open in it. The facts about its leftovers follow.
    ProcessEnded(End),
    /// Calls of a process that has ended are missing.
    CallsMissing(Missing),
    /// The run is over.
    Finished,
}

/// A call that gets handle data.
#[derive(Clone, Copy, Debug)]
pub struct Exporting<'t> {
    /// Its arguments.
    pub export: &'t Export,
    /// What it exports.
    pub source: Source<'t>,
}

/// What a get exports.
#[derive(Clone, Copy, Debug)]
pub enum Source<'t> {
    /// USM of this process, by the start of its allocation.
    Allocation(u64, &'t Allocation),
    /// Physical memory or an event.
    Object(Handle, &'t Object),
    /// An address in the open mapping that starts there.
    Mapping(u64, &'t Mapping),
    /// The address just behind an allocation of this process, at which nothing is known: the one that ends there.
    EndOf(u64, &'t Allocation),
    /// An object of a kind that the function is not for.
    OtherKind(KindMismatch),
    /// Nothing that the tracker knows.
    Unknown,
}

/// A call that opens handle data.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'t> {
    /// Its arguments.
    pub open: &'t Open,
    /// The export of the bytes, if a traced process got them.
    pub export: Option<ExportId>,
    /// The bytes are handle data of another kind.
    pub mismatch: Option<KindMismatch>,
}

/// The object that a call is about to end.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'t> {
    /// The kind and value that the call passes.
    pub object: Handle,
    /// In which context.
    pub context: Option<u64>,
    /// The state of its address.
    pub state: State,
    /// The object at the address.
    pub target: Target<'t>,
}

impl Ending<'_> {
    /// The violation of a call that ends a `kind`, by the table of lifecycles.
    pub fn violation(&self, kind: Kind) -> Option<Violation> {
        if self.object.kind == kind { step(self.state, Event::Ending).violation } else { None }
    }
}

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// When it returned.
    pub time: Nanos,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; if it makes an object, it returned one.
    Succeeded,
    /// It failed, or returned success and no result.
    Refused(ResultCode),
}

/// A call that should have made an object and has not.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'t> {
    /// The kind of object that it should have made.
    pub kind: Kind,
    /// Its result.
    pub result: ResultCode,
    /// The kind of the handle data that it was to open; `None` if it opens none.
    pub opens: Option<Kind>,
    /// The call, with what was known at its enter.
    pub call: &'t PendingCall,
}

/// A call that has returned an error.
#[derive(Clone, Copy, Debug)]
pub struct CallFailed<'t> {
    /// Its result.
    pub result: ResultCode,
    /// The call, with what was known at its enter.
    pub call: &'t PendingCall,
}

/// An open of bytes that no traced get has returned.
#[derive(Clone, Copy, Debug)]
pub struct UnknownHandle {
    /// The handle data that the open was given.
    pub handle: Handle,
    /// The fingerprint of the bytes.
    pub fingerprint: u64,
    /// Their size in bytes.
    pub size: Option<u64>,
    /// The outcome of the open.
    pub outcome: Outcome,
    /// Handle data that a traced process exported lay at the same address before: the adapter may have written into it.
    pub overwritten: bool,
    /// The process and the address in it that the bytes name: [`super::Tracker::named_export`] finds its export.
    pub named: Option<(u64, u64)>,
    /// The latest get of the same bytes but for a few that stand together, if there is one.
    pub altered: Option<Altered>,
    /// Two gets, one of which has returned it: its bytes do not say which.
    pub one_of: Option<[Place; 2]>,
}

/// Handle data that a get has returned.
#[derive(Clone, Copy, Debug)]
pub struct Exported<'t> {
    /// The address or object that the get was given. Another get may have returned the same handle data before.
    pub of: Option<u64>,
    /// The handle data.
    pub handle: Handle,
    /// Its record in the tracker.
    pub data: &'t HandleData,
    /// The result of the get.
    pub answer: &'t Answer,
    /// How long the get took, in nanoseconds.
    pub took: u64,
    /// Handle data that was alive at this address: its end was not recorded.
    pub replaced: Option<Serial>,
}

/// Handle data that was put.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// Which.
    pub handle: Handle,
    /// Which life of its address.
    pub serial: Serial,
    /// The export that it belonged to, if its bytes are known.
    pub export: Option<ExportId>,
    /// How long the put took, in nanoseconds.
    pub took: u64,
}

/// How many descriptors a process has open.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// How many are open.
    pub open: u64,
    /// How many handles, mappings and objects that can be shared it holds, besides [`Self::exported`].
    pub held: u64,
    /// How many descriptors it has exported and is to close, as far as their numbers did not come again.
    pub exported: u64,
    /// How many IPC calls had begun.
    pub calls: u64,
}

/// A leftover: an object that was alive when its process ended.
#[derive(Clone, Copy, Debug)]
pub struct Leftover {
    /// Why it is left over.
    pub reason: Reason,
    /// Nothing is wrong with it, or the call that ended it in a wrong way was reported.
    pub excused: bool,
    /// Its index among the leftovers of its kind that were made at the same place in the program and are
    /// not excused, in the order in which they were made.
    pub index: usize,
    /// The number of these leftovers.
    pub count: usize,
    /// When the first of them was made.
    pub since: Nanos,
    /// When the last of them was made.
    pub until: Nanos,
    /// The sum of their sizes in bytes; one of unknown size counts as 0.
    pub bytes: u64,
    /// The release of the application's last reference to its context.
    pub released: Option<Place>,
}

/// Why something is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The process exited.
    Exited,
    /// The process became another program.
    Exec,
    /// The process was killed.
    Killed,
    /// The trace stops, or calls are missing.
    Incomplete,
}
