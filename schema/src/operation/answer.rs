//! What a call has returned, decoded as [`Operation`](super::Operation) decodes what it does.

use crate::api::{Effect, Function};
use crate::{handle::Kind, values::Fields};

/// What a call has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The kind of what it was to make: an object, a mapping or handle data; none of other calls.
    pub makes: Option<Kind>,
    /// The address or handle of that. It may be null.
    pub made: Option<u64>,
    /// The size of handle data in bytes.
    pub data_size: Option<u64>,
    /// The fingerprint of handle data.
    pub fingerprint: Option<u64>,
    /// The start of the driver's allocation that handle data shares.
    pub base: Option<u64>,
    /// The size of that allocation, or of the range that the driver has mapped, in bytes.
    pub extent: Option<u64>,
    /// The first byte of opened handle data that the adapter has changed in urscope's copy.
    pub overwritten: Option<u64>,
    /// The [`checksum`](crate::handle::checksum) of handle data, unless its thread has recorded it before.
    pub checksum: Option<u64>,
    /// The value of the property that was asked for.
    pub value: Option<u64>,
}

impl Answer {
    /// The answer of a call.
    pub fn from_call(function: Function, values: &impl Fields) -> Self {
        let (makes, made, base) = match function.effect() {
            Effect::Opens(Kind::Usm) => (Some(Kind::Mapping), values.pointer(), None),
            Effect::Allocates(kind) => (Some(kind), values.pointer(), None),
            Effect::Creates(Kind::Context) => (Some(Kind::Context), values.context(), None),
            Effect::Creates(kind) | Effect::Opens(kind) => (Some(kind), values.object(), None),
            Effect::Exports(kind) | Effect::MayExport(kind) => (kind.handle_data(), values.data(), values.pointer()),
            Effect::Retains(Kind::Context) => (None, values.context(), None),
            Effect::Retains(_) => (None, values.object(), None),
            _ => (None, None, None),
        };
        Self {
            makes,
            made,
            data_size: values.data_size(),
            fingerprint: values.fingerprint(),
            base,
            extent: values.size(),
            overwritten: values.changed(),
            checksum: values.checksum(),
            value: values.value(),
        }
    }

    /// Whether the object was returned. A get that only queries the size returns the size.
    pub fn is_complete(&self) -> bool {
        let is_get = self.makes.is_some_and(|kind| kind.shares().is_some());
        let made = if is_get { self.made.or(self.data_size) } else { self.made };
        self.makes.is_none() || made.is_some_and(|made| made != 0)
    }
}
