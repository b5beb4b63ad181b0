//! The pointer arguments of the C functions, as types.
//!
//! The only door between raw pointers and the rest of the crate. A value of these types can come into being in one way
//! only: a C caller passes it to an entry point. So what ze_api.h promises about that argument (readable, writable, as
//! many elements as the count says, for the time of the call) holds for the value, and the methods here rely on it after
//! they have checked for NULL. Must never offer a way to make one from a number, never write more than the caller's
//! structure holds, and never touch `stype` or `pNext`.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::{ptr, slice};

use crate::ffi::handles::{Handle, Object};
use crate::ffi::result::{Outcome, ZeResult};

/// Chains longer than this are taken to be damaged.
const LONGEST_CHAIN: usize = 256;

/// `const T*`: something that the call reads.
#[repr(transparent)]
pub struct In<T>(*const T);

/// `T*`: something that the call writes or edits.
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// `void*`: an address in the application's memory, which commands may read and write until they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(usize);

/// What every extensible structure begins with (ze_api.h, `ze_base_properties_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Base {
    /// `stype`: which structure this is.
    pub s_type: u32,
    /// `pNext`: the next structure, or NULL.
    p_next: *mut c_void,
}

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> In<T> {
    /// An argument that was left out.
    pub(crate) const NULL: Self = Self(ptr::null());

    /// Whether the argument was left out.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// `INVALID_NULL_POINTER` if the argument was left out.
    pub(crate) fn check(self) -> Outcome {
        if self.is_null() { Err(ZeResult::INVALID_NULL_POINTER) } else { Ok(()) }
    }

    /// The value.
    pub(crate) fn read(self) -> Outcome<T>
    where
        T: Copy,
    {
        self.check()?;
        // SAFETY: the header of the entry point promises a readable T behind a non-NULL argument.
        Ok(unsafe { ptr::read_unaligned(self.0) })
    }

    /// The values of an array argument. A count of 0 needs no array.
    pub(crate) fn array<'a>(self, count: usize) -> Outcome<&'a [T]> {
        if count == 0 {
            return Ok(&[]);
        }
        self.check()?;
        // SAFETY: the header of the entry point promises `count` values behind a non-NULL array argument, which nobody
        // changes during the call; callers do not keep the slice.
        Ok(unsafe { slice::from_raw_parts(self.0, count) })
    }

    /// Whether the chain of this descriptor holds a structure of this type. Types that nobody asks for are passed over.
    pub(crate) fn has_next(self, s_type: u32) -> bool {
        self.next_of::<Base>(s_type).is_some()
    }

    /// The first structure of this type, which `U` must be, in the chain of this descriptor.
    pub(crate) fn next_of<U>(self, s_type: u32) -> Option<In<U>> {
        Out(self.0.cast_mut()).next_of(s_type).map(|found: Out<U>| In(found.0.cast_const()))
    }
}

impl<T> In<Handle<T>> {
    /// The live objects behind an array of handles.
    pub(crate) fn objects(self, count: u32) -> Outcome<Vec<Arc<T>>>
    where
        T: Object,
    {
        self.array(count as usize)?.iter().map(|handle| handle.get()).collect()
    }
}

impl In<c_char> {
    /// A C string. What is not UTF-8 is replaced.
    pub(crate) fn text(self) -> Outcome<String> {
        self.check()?;
        // SAFETY: the header of the entry point promises a C string behind a non-NULL name.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl<T> Out<T> {
    /// Whether the argument was left out.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// `INVALID_NULL_POINTER` if the argument was left out.
    pub(crate) fn check(self) -> Outcome {
        if self.is_null() { Err(ZeResult::INVALID_NULL_POINTER) } else { Ok(()) }
    }

    /// The value that the caller has put there.
    pub(crate) fn read(self) -> Outcome<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).read()
    }

    /// Writes a result that the caller asked for.
    pub(crate) fn write(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: the header of the entry point promises a writable T behind a non-NULL argument.
        unsafe { ptr::write_unaligned(self.0, value) };
        Ok(())
    }

    /// Writes a result that the caller may leave out.
    pub(crate) fn write_optional(self, value: T) {
        // NULL is what leaving it out looks like.
        let _ = self.write(value);
    }

    /// Lets `edit` change the payload of a structure that the caller has initialised.
    pub(crate) fn edit(self, edit: impl FnOnce(&mut T)) -> Outcome {
        // SAFETY: the header of the entry point promises an initialised structure that nobody else uses during the call.
        edit(unsafe { self.0.as_mut() }.ok_or(ZeResult::INVALID_NULL_POINTER)?);
        Ok(())
    }

    /// The structures behind this one in its `pNext` chain. This one must be extensible.
    pub(crate) fn chain(self) -> impl Iterator<Item = Out<Base>> {
        let next = |place: Out<Base>| {
            let base = place.read().ok()?;
            (!base.p_next.is_null()).then_some(Out(base.p_next.cast()))
        };
        std::iter::successors(next(self.cast()), move |place| next(*place)).take(LONGEST_CHAIN)
    }

    /// The first structure of this type, which `U` must be, in the chain behind this one.
    pub(crate) fn next_of<U>(self, s_type: u32) -> Option<Out<U>> {
        self.chain().find(|next| next.read().is_ok_and(|base| base.s_type == s_type)).map(Out::cast)
    }

    /// The element of an array argument with this index, which must be below the count that came with the array.
    pub(crate) fn element(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// The same place as another structure, whose `stype` it has.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl Address {
    /// The address of what the device hands out.
    pub(crate) const fn of(number: usize) -> Self {
        Self(number)
    }

    /// As a number.
    pub(crate) const fn number(self) -> usize {
        self.0
    }

    /// `INVALID_NULL_POINTER` for NULL.
    pub(crate) fn check(self) -> Outcome {
        if self.0 == 0 { Err(ZeResult::INVALID_NULL_POINTER) } else { Ok(()) }
    }
}

/// Answers the usual two-step query: with a count of 0 or no array it says how many there are; otherwise it hands
/// out as many as fit, each through `put`, and says how many that were.
pub(crate) fn enumerate<T, I>(
    count: Out<u32>,
    array: Out<T>,
    items: &[I],
    mut put: impl FnMut(Out<T>, &I) -> Outcome,
) -> Outcome {
    let room = count.read()?;
    if room == 0 || array.is_null() {
        return count.write(items.len() as u32);
    }
    for (index, item) in items.iter().take(room as usize).enumerate() {
        put(array.element(index), item)?;
    }
    count.write(room.min(items.len() as u32))
}

/// Copies `text` into a C string of fixed size, cut to fit and closed with a zero.
pub(crate) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    for (place, byte) in out.iter_mut().zip(text.bytes().take(N - 1)) {
        *place = byte;
    }
    out
}
