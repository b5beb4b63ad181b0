//! The values of a call: its arguments and its answers.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};

/// How a value is written in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `"0x…"`: an address, a handle or a hash.
    Hex,
    /// A decimal number (from 2^63 on as `"0x…"`, because Perfetto has no larger integers).
    Number,
}

macro_rules! values {
    ($($(#[$doc:meta])* $field:ident: $shape:ident,)*) => {
        /// A call's arguments (at the enter) or its answers (at the exit).
        ///
        /// A field that does not apply to a function, or that could not be read, is absent.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
        #[serde(default)]
        pub struct Values {
            $($(#[$doc])* #[serde(deserialize_with = "word")] pub $field: Option<u64>,)*
        }

        /// The indices of the fields in [`Values::FIELDS`].
        #[expect(non_camel_case_types, reason = "the variants have the names of the fields")]
        enum FieldIndex {
            $($field,)*
        }

        /// The values of a call, in any form.
        pub trait Fields {
            /// The value at a position of [`Values::FIELDS`].
            fn value_at(&self, place: usize) -> Option<u64>;

            $(
                $(#[$doc])*
                #[inline]
                fn $field(&self) -> Option<u64> {
                    self.value_at(FieldIndex::$field as usize)
                }
            )*
        }

        impl Fields for Values {
            fn value_at(&self, place: usize) -> Option<u64> {
                [$(self.$field),*].get(place).copied().flatten()
            }

            $(
                #[inline]
                fn $field(&self) -> Option<u64> {
                    self.$field
                }
            )*
        }

        impl Values {
            /// Names and shapes of the fields, in the order in which they are written.
            pub const FIELDS: &'static [(&'static str, Shape)] = &[$((stringify!($field), Shape::$shape),)*];

            /// No value.
            pub const NONE: Self = Self { $($field: None,)* };

            /// Reads the fields at the front of `line` that have the form and order of the writer, and advances `line`
            /// past them. Calls `each` with the position of a field and its value.
            #[inline]
            pub(crate) fn scan(
                line: &mut &[u8],
                value: impl Fn(&mut &[u8]) -> Option<u64>,
                mut each: impl FnMut(usize, u64),
            ) -> Option<()> {
                $(if let Some(rest) = line.strip_prefix(concat!(",\"", stringify!($field), "\":").as_bytes()) {
                    *line = rest;
                    each(FieldIndex::$field as usize, value(line)?);
                })*
                Some(())
            }

            /// The values at the positions whose bits are set in `places`, from `words` in the order of the positions.
            #[inline]
            pub(crate) fn unpacked(places: u64, words: &[u64]) -> Self {
                let mut values = Self::NONE;
                let mut words = words.iter();
                $(if places >> FieldIndex::$field as usize & 1 != 0 { values.$field = words.next().copied(); })*
                values
            }

            /// Calls `each` for every field that is present, in order.
            #[inline]
            pub fn for_each(&self, mut each: impl FnMut(&'static str, Shape, u64)) {
                $(if let Some(value) = self.$field { each(stringify!($field), Shape::$shape, value); })*
            }

            /// Calls `each` for every field that is present, in order, with its position in [`Self::FIELDS`].
            #[inline(always)]
            pub fn for_each_place(&self, mut each: impl FnMut(usize, Shape, u64)) {
                $(if let Some(value) = self.$field { each(FieldIndex::$field as usize, Shape::$shape, value); })*
            }

            /// Sets the field at a position of [`Self::FIELDS`]; any other position has no effect.
            #[inline]
            pub fn set(&mut self, place: usize, value: u64) {
                $(if place == FieldIndex::$field as usize { self.$field = Some(value); })*
            }
        }
    };
}

values! {
    /// The number of the adapter that served the call, as in the trace's `urscope_entry_point` records.
    via: Number,
    /// An adapter handle.
    adapter: Hex,
    /// A device handle.
    device: Hex,
    /// A context handle.
    context: Hex,
    /// A physical memory, event or USM pool handle.
    object: Hex,
    /// An address of memory.
    pointer: Hex,
    /// A size in bytes.
    size: Number,
    /// An offset in bytes.
    offset: Number,
    /// A set of flags.
    flags: Hex,
    /// A number of objects.
    count: Number,
    /// The address of handle data.
    data: Hex,
    /// The size of handle data in bytes.
    data_size: Number,
    /// The fingerprint of the handle data ([`crate::handle::fingerprint`]).
    fingerprint: Hex,
    /// A `ur_device_info_t`; in Level Zero, the extension by which a descriptor is exported or imported
    /// ([`crate::api::level_zero::constants`]); in CUDA, the type of a handle, or that an allocation imports.
    property: Hex,
    /// Whether a call waits for its command; the answer to a question.
    value: Number,
    /// The process that opened handle data names as its exporter, in that one's pid namespace.
    exporter: Number,
    /// The address in its exporter that opened handle data names; in Level Zero, the descriptor there
    /// ([`crate::handle::descriptor_data`]).
    exported: Hex,
    /// The address that a command copies from.
    source: Hex,
    /// The queue or stream that a command goes to; 0 is the default stream of CUDA.
    queue: Hex,
    /// What urscope noticed besides, as bits ([`crate::operation::ACCESSED`] and those behind it).
    noticed: Hex,
    /// Of a call that ends memory: the offset of the first byte that an unfinished command accesses, as the software
    /// device says.
    unfinished: Number,
    /// Of an execution of command lists: the number of the call that appended the command.
    appended: Number,
    /// The checksum of handle data ([`crate::handle::checksum`]), if the thread has not met the bytes lately.
    checksum: Number,
    /// Of an open: the first byte that the adapter changed in its copy of the handle data.
    changed: Number,
    /// The number of the call stack ([`crate::trace::records::Stack`]).
    stack: Number,
}

impl Values {
    /// The positions of some fields in [`Self::FIELDS`].
    pub(crate) const OFFSET: usize = FieldIndex::offset as usize;
    pub(crate) const SIZE: usize = FieldIndex::size as usize;
    pub(crate) const QUEUE: usize = FieldIndex::queue as usize;
    pub(crate) const APPENDED: usize = FieldIndex::appended as usize;

    /// The address or handle that a call is about: handle data, or else memory, or else an object.
    pub fn subject(&self) -> Option<u64> {
        [self.data, self.pointer, self.object].into_iter().flatten().find(|value| *value != 0)
    }
}

/// Deserializes a 64-bit number that was written as a number or as `"0x…"`.
pub(crate) fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<'a> {
        Number(u64),
        #[serde(borrow)]
        Text(Cow<'a, str>),
    }
    match Either::deserialize(from)? {
        Either::Number(number) => Ok(Some(number)),
        Either::Text(text) => text
            .strip_prefix("0x")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .map(Some)
            .ok_or_else(|| D::Error::custom(format!("expected a number or \"0x…\", found {text:?}"))),
    }
}
