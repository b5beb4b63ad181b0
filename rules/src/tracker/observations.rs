//! Observations at the enter of a call. A pending call keeps them until its return, and facts carry them.

use urscope_schema::handle::{Handle, Kind};

use crate::place::Place;

/// An object that is passed where the call takes another kind.
#[derive(Clone, Copy, Debug)]
pub struct KindMismatch {
    /// The kind that the call takes.
    pub expected: Kind,
    /// The object: one of this process, or the handle data that was given to an open.
    pub is: Handle,
    /// The call that made it.
    pub born: Place,
    /// The fingerprint of the handle data that was given to an open.
    pub fingerprint: Option<u64>,
}

/// An address at which there was a mapping, or USM of this process, that has ended.
#[derive(Clone, Copy, Debug)]
pub struct DanglingUse {
    /// The address that the call was given.
    pub pointer: u64,
    /// The mapping or USM that was there.
    pub was: Handle,
    /// The close or the free that ended it.
    pub died: Place,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of the handle data that a mapping was opened from.
    pub fingerprint: Option<u64>,
}

impl DanglingUse {
    /// The one of these whose object ended last.
    pub(super) fn latest(ended: impl Iterator<Item = Self>) -> Option<Self> {
        ended.max_by_key(|ended| (ended.died.time, ended.died.call))
    }
}

/// Handle data that is opened after its end.
#[derive(Clone, Copy, Debug)]
pub struct Expired {
    /// The copy that was given to the open.
    pub handle: Handle,
    /// The latest get.
    pub got: Place,
    /// Why it has expired.
    pub reason: Expiry,
    /// The exported address, or object.
    pub value: Option<u64>,
    /// How many bytes were exported.
    pub size: Option<u64>,
    /// The fingerprint of its bytes.
    pub fingerprint: u64,
}

/// Handle data that a traced process got, and that was changed before it was opened.
#[derive(Clone, Copy, Debug)]
pub struct Altered {
    /// The latest get.
    pub got: Place,
    /// The exported address, or object.
    pub value: Option<u64>,
    /// The first byte that differs, counted from 0.
    pub first: usize,
    /// How many bytes may differ from there on.
    pub length: usize,
}

/// Why handle data has expired.
#[derive(Clone, Copy, Debug)]
pub enum Expiry {
    /// Its last put.
    Put(Place),
    /// The free of its memory.
    Freed(Place),
    /// The free of its memory, and the call that allocated the memory that is at its address now.
    Replaced(Place, Option<Place>),
}

/// Whether a device can share a kind of object, as it reported.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The device.
    pub device: u64,
    /// The kind of object.
    pub kind: Kind,
    /// The reported value: 0 is no; `None` if it could not be read.
    pub value: Option<u64>,
}
