//! The data of facts about memory that ends: how it is freed, what depended on it, and which commands may access it.

use urscope_schema::handle::Handle;

use super::{observations::DanglingUse, records::Serial};
use crate::place::Place;

/// How memory is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeing {
    /// By the call itself.
    Call,
    /// By a command of a queue, when its turn comes. It may wait for another process: the call names events
    /// to wait for, or the process has events that it shares.
    Enqueued {
        /// Whether it may wait for another process.
        waits: bool,
    },
    /// With its pool.
    Pool(u64),
    /// With its context.
    Context(u64),
}

/// A mapping of freed memory that is open.
#[derive(Clone, Copy, Debug)]
pub struct OpenMapping {
    /// Its first open that is not closed.
    pub opened: Place,
    /// Its address in its process.
    pub pointer: u64,
    /// Whether it is certainly open. It may not be if its process was killed at an unknown moment, or if
    /// the application has released its context.
    pub is_certain: bool,
}

/// A mapping whose memory is freed.
#[derive(Clone, Copy, Debug)]
pub struct StaleUse {
    /// The mapping.
    pub mapping: Handle,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of the handle data that it was opened from.
    pub fingerprint: Option<u64>,
    /// Its first open that is not closed.
    pub opened: Place,
    /// The free of the memory. It returned before the command was enqueued.
    pub freed: Place,
    /// The address of the memory in its exporter, and the latest get of other memory that the exporter has there since.
    pub anew: Option<(u64, Place)>,
}

/// Mapped physical memory of another process that is accessed as it was before, although its owner has unmapped it and
/// mapped other memory at its address.
#[derive(Clone, Copy, Debug)]
pub struct OutdatedUse {
    /// Where it is mapped.
    pub mapping: Handle,
    /// The size of that range in bytes.
    pub size: u64,
    /// The fingerprint of the handle data that it was opened from.
    pub fingerprint: u64,
    /// The call that mapped it.
    pub mapped: Place,
    /// The address in its owner.
    pub address: u64,
    /// The unmap there.
    pub unmapped: Place,
    /// The map of other memory there.
    pub anew: Place,
}

/// An event of another process, which that has destroyed.
#[derive(Clone, Copy, Debug)]
pub struct StaleEvent {
    /// The event.
    pub event: Handle,
    /// The fingerprint of the handle data that it was opened from.
    pub fingerprint: Option<u64>,
    /// Its open.
    pub opened: Place,
    /// Its end in the process that made it.
    pub destroyed: Place,
}

/// A command that begins inside shared memory and ends outside of it.
#[derive(Clone, Copy, Debug)]
pub struct PastEnd {
    /// The mapping or the USM.
    pub memory: Handle,
    /// Its size in bytes.
    pub size: u64,
    /// The fingerprint of the handle data that it was opened from, if it is a mapping.
    pub fingerprint: Option<u64>,
    /// The open or the allocation.
    pub born: Option<Place>,
    /// How many bytes into the memory the command begins.
    pub offset: u64,
    /// How many bytes it accesses.
    pub length: u64,
    /// Whether it writes them.
    pub writes: bool,
}

/// A command that accesses shared memory which has ended.
#[derive(Clone, Copy, Debug)]
pub struct DeadAccess {
    /// The address that it accesses, and what was there.
    pub used: DanglingUse,
    /// Whether it writes there.
    pub writes: bool,
    /// The call that appended it to a command list, if the list is executed now and that call is known.
    pub appended: Option<Place>,
    /// Whether a command list is executed now that it was appended to before.
    pub is_executed: bool,
}

/// A command of a queue whose context is another one than that of a mapping which it accesses.
#[derive(Clone, Copy, Debug)]
pub struct ForeignUse {
    /// The mapping.
    pub mapping: Handle,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of the handle data that it was opened from.
    pub fingerprint: Option<u64>,
    /// Its first open that is not closed.
    pub opened: Place,
    /// The context of that.
    pub of: u64,
    /// The context of the queue.
    pub context: u64,
    /// Whether these are certainly two: each was made by a recorded call. Two handles may stand for one native context.
    pub is_certain: bool,
}

/// Memory that ends while commands may access it.
#[derive(Clone, Copy, Debug)]
pub struct InUse {
    /// The mapping, the USM, or the physical memory that is unmapped.
    pub memory: Handle,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of the handle data that it was opened from.
    pub fingerprint: Option<u64>,
    /// The call that enqueued such a command: the first one that the host has not waited for, if there is one.
    pub command: Option<Place>,
    /// How many bytes into the memory an unfinished command accesses it, as the device reports. `None` if the device
    /// cannot be asked, or if all have completed: then the host has not waited for `command`, and no more is known.
    pub unfinished: Option<u64>,
}

/// Where physical memory was mapped in its process when the release of its last reference began,
/// without ranges that another call was unmapping.
#[derive(Clone, Copy, Debug)]
pub struct StillMapped {
    /// The first of the calls that mapped it.
    pub mapped: Place,
    /// The first address of that range.
    pub pointer: u64,
    /// Its size in bytes.
    pub size: u64,
    /// How many other ranges there were.
    pub others: u64,
}

/// Memory that has been freed, or an object whose last reference has been released, with what depended
/// on it when that began.
#[derive(Clone, Debug)]
pub struct Freed {
    /// How it is freed.
    pub how: Freeing,
    /// The memory or object.
    pub what: Handle,
    /// Which life of that address.
    pub serial: Serial,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of the handle data that is named.
    pub fingerprint: Option<u64>,
    /// The number of its handles that were not put.
    pub handles: u64,
    /// The last get of these handles.
    pub got: Option<Place>,
    /// The mappings of it that were open. The certain ones come first, and among them those of other processes.
    pub holders: Vec<OpenMapping>,
    /// Where it was mapped, if it is physical memory.
    pub mapped: Option<StillMapped>,
}

impl Freed {
    /// An end of memory or an object on which nothing depends.
    pub(super) const fn new(what: Handle, serial: Serial, size: Option<u64>) -> Self {
        Self {
            how: Freeing::Call,
            what,
            serial,
            size,
            fingerprint: None,
            handles: 0,
            got: None,
            holders: Vec::new(),
            mapped: None,
        }
    }
}
