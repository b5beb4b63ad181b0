//! What a command does when its turn comes.
//!
//! Made by the append calls, carried out by a stream's worker. Work that touches memory of ours holds a reference to
//! it, so that a free that comes too early cannot pull it away. Must never touch memory before its turn.

use std::ptr;
use std::sync::Arc;

use crate::events::event::{self, Event};
use crate::ffi::Address;
use crate::memory::{self, Retained};
use crate::platform::clock;

/// One thing to do.
pub(crate) enum Work {
    /// Nothing: a barrier, a signal, a wait.
    Nothing,
    /// Copy bytes; the ranges may overlap.
    Copy {
        /// Where to.
        to: Location,
        /// Where from.
        from: Location,
        /// How many bytes.
        length: usize,
    },
    /// Repeat a pattern.
    Fill {
        /// Where to.
        to: Location,
        /// The pattern; not empty.
        pattern: Box<[u8]>,
        /// How many bytes; the last repetition may be cut.
        length: usize,
    },
    /// Copy a box of bytes, row by row.
    CopyRegion {
        /// First byte, row pitch and slice pitch of the destination.
        to: PitchedLocation,
        /// The same of the source.
        from: PitchedLocation,
        /// Width in bytes, height in rows, depth in slices.
        extent: [usize; 3],
    },
    /// Write the time of the device: 8 bytes.
    Timestamp {
        /// Where to.
        to: Location,
    },
    /// Write the timestamps of events: 32 bytes each.
    EventTimestamps {
        /// Where to.
        to: Location,
        /// The events, and at what offset each goes.
        events: Vec<(Arc<Event>, usize)>,
    },
    /// Take a signal back.
    Reset(Arc<Event>),
}

/// An address, with what keeps it valid. Addresses of the application's own are its own responsibility.
pub(crate) struct Location {
    address: usize,
    _retained: Option<Retained>,
}

/// A place in rows and slices.
pub(crate) struct PitchedLocation {
    /// The first byte.
    pub place: Location,
    /// Bytes from one row to the next.
    pub row: usize,
    /// Bytes from one slice to the next.
    pub slice: usize,
}

impl Location {
    /// The place that a pointer argument names.
    pub(crate) fn new(pointer: Address) -> Self {
        let address = pointer.number();
        Self { address, _retained: memory::retain(address) }
    }

    /// The place `offset` bytes further on.
    pub(crate) fn forward(self, offset: usize) -> Self {
        Self { address: self.address + offset, ..self }
    }

    fn at(&self, offset: usize) -> *mut u8 {
        (self.address + offset) as *mut u8
    }

    fn write<T>(&self, offset: usize, value: T) {
        // SAFETY: as for copy; the place need not be aligned.
        unsafe { ptr::write_unaligned((self.address + offset) as *mut T, value) };
    }
}

impl Work {
    /// Does it.
    pub(crate) fn perform(&self) {
        match self {
            Self::Nothing => {}
            Self::Copy { to, from, length } => copy(to.at(0), from.at(0), *length),
            Self::Fill { to, pattern, length } => fill(to, pattern, *length),
            Self::CopyRegion { to, from, extent: [width, height, depth] } => {
                for slice in 0..*depth {
                    for row in 0..*height {
                        let at =
                            |pitched: &PitchedLocation| pitched.place.at(slice * pitched.slice + row * pitched.row);
                        copy(at(to), at(from), *width);
                    }
                }
            }
            Self::Timestamp { to } => to.write(0, clock::now()),
            Self::EventTimestamps { to, events } => {
                for (event, offset) in events {
                    if let Some(result) = event::kernel_timestamps(event) {
                        to.write(*offset, result);
                    }
                }
            }
            Self::Reset(event) => event.signal.reset(),
        }
    }
}

fn copy(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the append calls of ze_api.h value ranges of this length that stay valid until the command is done;
    // those of ours are held by the work. They may overlap.
    unsafe { ptr::copy(from, to, length) };
}

/// Writes the pattern once and then doubles what is there.
fn fill(to: &Location, pattern: &[u8], length: usize) {
    if let [byte] = pattern {
        // SAFETY: as for copy.
        unsafe { ptr::write_bytes(to.at(0), *byte, length) };
        return;
    }
    let mut done = pattern.len().min(length);
    copy(to.at(0), pattern.as_ptr(), done);
    while done < length {
        let step = done.min(length - done);
        copy(to.at(done), to.at(0), step);
        done += step;
    }
}
