//! The changes that a returning call has made, as the transitions report them. Each becomes a fact.

use smallvec::SmallVec;
use urscope_schema::handle::Handle;

use super::freeing::{Freed, Freeing};
use super::observations::{DanglingUse, Support};
use super::records::{ExportId, Life, Serial};

/// The changes that one call has made, in order.
pub(super) type Changes = SmallVec<[Change; 1]>;

/// A change that a call has made.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The call has used an address of memory that this process has freed or closed.
    Dangling(Box<DanglingUse>),
    /// USM has been allocated, or physical memory or an event has been created.
    Allocated(Handle),
    /// A get of an address or object has returned handle data. If something was alive there, its end was not recorded.
    Exported { of: Option<u64>, handle: Handle, replaced: Option<Serial> },
    /// An open has returned a mapping or an object.
    Opened(Opened),
    /// Handle data has been put, which belonged to that export, if its bytes are known.
    Put(Life, Option<ExportId>),
    /// An open has been closed.
    Closed(Life),
    /// Memory on which nothing depended has been freed: how, what, which life of it, and its size in bytes.
    Freed(Freeing, Handle, Serial, Option<u64>),
    /// Memory has been freed, or an object has been released for the last time.
    FreedWith(Box<Freed>),
    /// The context of shared memory has been released for the last time.
    ContextReleased(Box<Freed>),
    /// The object that the call was to end is still alive.
    EndRefused(Handle),
    /// A device has reported whether it can share something.
    Support(Support),
}

/// A mapping or an object that an open has returned.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The mapping, physical memory or event.
    pub handle: Handle,
    /// Identifies this open: a pointer may be opened several times.
    pub serial: Serial,
    /// The export that it was opened from, if a traced process exported it.
    pub export: Option<ExportId>,
    /// The fingerprint of the handle data.
    pub fingerprint: Option<u64>,
}
