//! Reading and writing what a C caller points at.
//!
//! The only door between raw pointer arguments and the rest of the crate. Every function here checks for NULL first and
//! answers `INVALID_NULL_POINTER`; what a non-NULL pointer points at is the promise of the Level Zero headers. Must
//! never write more than the caller's structure holds, and never touch `stype` or `pNext`.

use std::ffi::c_void;
use std::{ptr, slice};

use crate::registry::{Handle, Object};
use crate::result::{Answer, ZeResult};

/// What every extensible structure begins with (ze_api.h, `ze_base_properties_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Base {
    /// `stype`: which structure this is.
    pub s_type: u32,
    /// `pNext`: the next structure, or NULL.
    pub p_next: *mut c_void,
}

/// Chains longer than this are taken to be damaged.
const LONGEST_CHAIN: usize = 256;

/// Reads a descriptor or a value that the caller passes by pointer.
pub(crate) fn read<T: Copy>(from: *const T) -> Answer<T> {
    if from.is_null() {
        return Err(ZeResult::INVALID_NULL_POINTER);
    }
    // SAFETY: the header of the entry point promises a readable T behind a non-NULL argument.
    Ok(unsafe { ptr::read_unaligned(from) })
}

/// Writes a result that the caller asked for.
pub(crate) fn write<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(ZeResult::INVALID_NULL_POINTER);
    }
    // SAFETY: the header of the entry point promises a writable T behind a non-NULL argument.
    unsafe { ptr::write_unaligned(to, value) };
    Ok(())
}

/// Writes a result that the caller may leave out.
pub(crate) fn write_optional<T>(to: *mut T, value: T) {
    let _ = write(to, value);
}

/// Lets `edit` change the payload of a structure that the caller has initialised.
pub(crate) fn edit<T>(place: *mut T, edit: impl FnOnce(&mut T)) -> Answer {
    // SAFETY: the header of the entry point promises an initialised structure that nobody else uses during the call.
    let place = unsafe { place.as_mut() }.ok_or(ZeResult::INVALID_NULL_POINTER)?;
    edit(place);
    Ok(())
}

/// The values of an array argument. A count of 0 needs no pointer.
pub(crate) fn array<'a, T: Copy>(from: *const T, count: u32) -> Answer<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(ZeResult::INVALID_NULL_POINTER);
    }
    // SAFETY: the header of the entry point promises `count` values behind a non-NULL array argument.
    Ok(unsafe { slice::from_raw_parts(from, count as usize) })
}

/// The live objects behind an array of handles.
pub(crate) fn objects<T: Object>(from: *const Handle<T>, count: u32) -> Answer<Vec<std::sync::Arc<T>>> {
    array(from, count)?.iter().map(|handle| handle.get()).collect()
}

/// Bytes that the caller passes with a length.
pub(crate) fn bytes<'a>(from: *const c_void, length: usize) -> Answer<&'a [u8]> {
    if from.is_null() {
        return Err(ZeResult::INVALID_NULL_POINTER);
    }
    // SAFETY: the header of the entry point promises `length` readable bytes behind the pointer.
    Ok(unsafe { slice::from_raw_parts(from.cast(), length) })
}

/// Answers the usual two-step query: with a count of 0 or no array it says how many there are; otherwise it hands
/// out as many as fit, each through `put`, and says how many that were.
pub(crate) fn enumerate<T, I>(
    count: *mut u32,
    array: *mut T,
    items: &[I],
    mut put: impl FnMut(*mut T, &I) -> Answer,
) -> Answer {
    let room = read(count)?;
    if room == 0 || array.is_null() {
        return write(count, items.len() as u32);
    }
    for (index, item) in items.iter().take(room as usize).enumerate() {
        // SAFETY: the header of the entry point promises an array of at least `*count` elements; index stays below it.
        put(unsafe { array.add(index) }, item)?;
    }
    write(count, room.min(items.len() as u32))
}

/// The structures of a `pNext` chain, in order. Types that nobody asks for are passed over.
pub(crate) fn chain(first: *const c_void) -> impl Iterator<Item = *mut Base> {
    let next = |place: *const c_void| (!place.is_null()).then(|| place.cast_mut().cast::<Base>());
    std::iter::successors(next(first), move |place| read(*place).ok().and_then(|base| next(base.p_next)))
        .take(LONGEST_CHAIN)
}

/// The first structure of type `s_type` in a `pNext` chain.
pub(crate) fn find<T>(first: *const c_void, s_type: u32) -> Option<*mut T> {
    chain(first).find(|place| read(*place).is_ok_and(|base| base.s_type == s_type)).map(<*mut Base>::cast)
}

/// Copies `text` into a C string of fixed size, cut to fit and closed with a zero.
pub(crate) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    for (place, byte) in out.iter_mut().zip(text.bytes().take(N - 1)) {
        *place = byte;
    }
    out
}
