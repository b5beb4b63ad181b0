//! Calls that have begun and not returned, with what their return will need.

use urscope_schema::handle::{Handle, Kind};

use super::{
    exports::ExportId,
    fact::{DanglingUse, Expired, Freed, Support},
    records::{Open, Origin, Serial},
};
use crate::finding::Place;

/// A call that has not returned.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// Where it began.
    pub place: Place,
    /// What it is about.
    pub operation: Operation,
}

/// What a call under way is about.
#[derive(Clone, Debug)]
pub enum Operation {
    /// It gets handle data.
    Get {
        /// Of which kind.
        kind: Kind,
        /// Of which address or object.
        value: Option<u64>,
        /// Which life of that.
        exported: Option<Serial>,
        /// In which context.
        context: Option<u64>,
        /// The address is one that this process has freed or closed.
        dangling: Option<Box<DanglingUse>>,
    },
    /// It puts handle data.
    Put {
        /// Which.
        handle: Handle,
        /// Which life of that.
        serial: Serial,
    },
    /// It creates physical memory or an event.
    Create {
        /// Of which kind.
        kind: Kind,
        /// With the IPC flag or without.
        origin: Origin,
        /// In which context.
        context: Option<u64>,
        /// Of how many bytes.
        size: Option<u64>,
    },
    /// It takes a reference to an object.
    Retain {
        /// Which.
        object: Handle,
        /// Which life of that.
        serial: Serial,
    },
    /// It gives a reference to an object back.
    Release {
        /// Which.
        object: Handle,
        /// Which life of that.
        serial: Serial,
    },
    /// It opens handle data.
    Open(Opens),
    /// It closes a mapping.
    Close {
        /// The start of the mapping.
        pointer: u64,
        /// Which life of that.
        serial: Serial,
        /// The open that it ends.
        open: Open,
        /// It is closed in a wrong way, which is reported.
        wrongly: bool,
    },
    /// It allocates USM.
    Allocate {
        /// Of how many bytes.
        size: Option<u64>,
        /// On which device.
        device: Option<u64>,
    },
    /// It asks a device whether that can share something.
    Ask(Support),
    /// It creates a context, of this device if it is the only one.
    CreateContext(Option<u64>),
    /// It frees USM.
    Free {
        /// The start of the allocation.
        pointer: u64,
        /// Which life of that.
        serial: Serial,
        /// What depended on it when the call began, if anything did.
        dependent: Option<Box<Freed>>,
    },
    /// It frees an address that this process has closed.
    FreeDangling(Box<DanglingUse>),
    /// It waits on the host for one event.
    Wait(Handle),
    /// It takes a reference to a context.
    RetainContext {
        /// Which.
        context: u64,
        /// Which life of that.
        serial: Serial,
    },
    /// It gives a reference to a context back.
    ReleaseContext {
        /// Which.
        context: u64,
        /// Which life of that.
        serial: Serial,
        /// It is the last reference.
        last: bool,
    },
    /// Nothing that the tracker follows.
    Nothing,
}

/// An open of handle data.
#[derive(Clone, Debug)]
pub struct Opens {
    /// What is to be made: a mapping, physical memory or an event.
    pub kind: Kind,
    /// In which context.
    pub context: Option<u64>,
    /// The fingerprint of the handle data.
    pub fingerprint: Option<u64>,
    /// The export that the bytes are of.
    pub export: Option<ExportId>,
    /// The handle data had expired when the call began.
    pub expired: Option<Box<Expired>>,
    /// The address of the handle data.
    pub data: Option<u64>,
    /// Its size in bytes.
    pub size: Option<u64>,
}
