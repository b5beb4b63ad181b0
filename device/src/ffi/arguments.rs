//! The arguments of the C functions, as types.
//!
//! Raw pointers reach the rest of the crate only as these types. A value of [`In`], [`Out`], [`Address`] or
//! [`Argument`] exists only because a C caller passed it to an entry point. So what ze_api.h promises about that
//! argument (readable, writable, as many elements as the count says, for the duration of the call) holds for the value,
//! and the methods here rely on it once they have checked for NULL. Must never offer a safe way to make one from a
//! number, never write more than the caller's structure holds, and never change `stype` or `pNext`.

use std::ffi::{CStr, c_char, c_void};
use std::{ptr, sync::Arc};

use super::handles::{Handle, Object, short_name};
use super::layout::{Base, Extensible, Extension};
use super::result::{Outcome, ZeResult};
use crate::platform::{log, process};

/// The longest chain that is followed. A longer one is damaged, and its rest is ignored.
const MAX_CHAIN: usize = 256;

/// The longest chain that is followed where each of many changes has a structure.
const MAX_UPDATE_CHAIN: usize = 1 << 20;

/// `const T*`: something that the call reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct In<T>(*const T);

/// `T*`: something that the call writes, or edits in place.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// A character or a byte.
pub(crate) trait ByteSized {}

impl ByteSized for u8 {}
impl ByteSized for i8 {}

/// `void*`: an address in the application's memory, which commands may read and write until they have completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(usize);

/// A count, size or pitch that describes the memory of a pointer argument of the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Argument<T>(T);

/// `ze_host_function_callback_t` or `zex_mem_graph_free_callback_fn_t`: what an application wants to be called.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct HostFunction(Option<unsafe extern "C" fn(UserData)>);

/// `void*` of the application, which only its own function looks at. It may be NULL.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct UserData(usize);

/// `void*` that the device returns. Unlike an [`Address`], it grants no access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pointer(usize);

impl HostFunction {
    /// `INVALID_ARGUMENT` if the argument was omitted.
    pub(crate) fn check(self) -> Outcome {
        self.0.map(drop).ok_or_else(|| ZeResult::INVALID_ARGUMENT.because(|| "the function to call is NULL"))
    }

    pub(crate) fn call(self, data: UserData) {
        if let Some(function) = self.0 {
            // SAFETY: the application has passed both for this call, and ze_api.h lets the device make it: at any
            // time before the command has completed, or when the graph is destroyed.
            unsafe { function(data) };
        }
    }
}

impl<T: Copy> Argument<T> {
    /// What a C caller of another interface has passed.
    ///
    /// # Safety
    /// It must describe the memory at the [`Address`] that it is used with, as that interface promises.
    pub const unsafe fn new(value: T) -> Self {
        Self(value)
    }

    pub(crate) const fn value(self) -> T {
        self.0
    }
}

impl Argument<usize> {
    /// The smaller one of two sizes of the same call.
    pub(crate) fn at_most(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

/// What pointer arguments have in common.
macro_rules! pointer_argument {
    ($kind:ident, $what:literal) => {
        impl<T: Copy> $kind<T> {
            /// Whether the argument was omitted.
            pub(crate) fn is_null(self) -> bool {
                self.0.is_null()
            }

            /// `INVALID_NULL_POINTER` if the argument was omitted.
            pub(crate) fn check(self) -> Outcome {
                if self.is_null() { Err(null::<T>($what)) } else { Ok(()) }
            }

            /// The element of an array argument with this index.
            ///
            /// # Safety
            /// The caller's array must have more than `index` elements.
            pub(crate) unsafe fn element(self, index: usize) -> Self {
                Self(self.0.wrapping_add(index))
            }
        }
    };
}

pointer_argument!(In, "reads");
pointer_argument!(Out, "writes");

#[cold]
fn null<T>(what: &str) -> ZeResult {
    ZeResult::INVALID_NULL_POINTER
        .because(|| format!("the pointer to the {} that it {what} is NULL", short_name::<T>()))
}

impl<T: Copy> In<T> {
    /// The value, or `INVALID_NULL_POINTER`.
    pub(crate) fn read(self) -> Outcome<T> {
        self.check()?;
        // SAFETY: the header of the entry point promises a readable T for a non-NULL argument.
        Ok(unsafe { ptr::read_unaligned(self.0) })
    }

    /// A copy of the `count` values of an array argument, or `INVALID_NULL_POINTER`. A count of 0 needs no array.
    pub(crate) fn array(self, count: Argument<impl Copy + TryInto<usize>>) -> Outcome<Vec<T>> {
        Ok(self.elements(count)?.collect())
    }

    fn elements(self, count: Argument<impl Copy + TryInto<usize>>) -> Outcome<impl Iterator<Item = T>> {
        let count = count.0.try_into().map_err(|_| ZeResult::INVALID_SIZE)?;
        if count > 0 {
            self.check()?;
        }
        // SAFETY: the header of the entry point promises `count` readable values for a non-NULL array argument.
        Ok((0..count).map(move |index| unsafe { ptr::read_unaligned(self.0.add(index)) }))
    }

    /// A pointer argument that is a member of this structure. It may be NULL.
    pub(crate) fn member<U>(self, of: fn(&T) -> *const U) -> Outcome<In<U>> {
        Ok(In(of(&self.read()?)))
    }

    /// A pointer argument for a result that is a member of this structure. It may be NULL.
    pub(crate) fn out_member<U>(self, of: fn(&T) -> *mut U) -> Outcome<Out<U>> {
        Ok(Out(of(&self.read()?)))
    }

    /// A count or size that is a member of this structure.
    pub(crate) fn number<U>(self, of: fn(&T) -> U) -> Outcome<Argument<U>> {
        Ok(Argument(of(&self.read()?)))
    }
}

impl<T: Extensible> In<T> {
    /// Whether the chain of this descriptor contains a structure of this type. Structures of unknown types are skipped.
    pub(crate) fn has_next(self, s_type: u32) -> bool {
        Out(self.0.cast_mut()).chain().any(|next| next.read().is_ok_and(|base| base.s_type == s_type))
    }

    /// All structures in the chain of this descriptor, which may be many.
    pub(crate) fn all_next(self) -> impl Iterator<Item = In<Base>> {
        Out(self.0.cast_mut()).structures(|_| true).take(MAX_UPDATE_CHAIN).map(|next| In(next.0.cast_const()))
    }

    /// The first structure of type `U` in the chain of this descriptor.
    pub(crate) fn next_of<U: Extension>(self) -> Option<In<U>> {
        Out(self.0.cast_mut()).next_of::<U>().map(|found| In(found.0.cast_const()))
    }
}

impl<T: Copy> In<*const T> {
    /// The pointers of an array argument: `count` of them, each of which may be NULL. All are NULL without an array.
    pub(crate) fn optional_pointers(self, count: Argument<u32>) -> Outcome<Vec<In<T>>> {
        if self.is_null() {
            return Ok(vec![In(ptr::null()); count.0 as usize]);
        }
        Ok(self.elements(count)?.map(In).collect())
    }
}

impl In<Base> {
    /// `UNSUPPORTED_FEATURE` for a call with extensions that takes none of them.
    pub(crate) fn check_no_extension(self) -> Outcome {
        let refused = || ZeResult::UNSUPPORTED_FEATURE.because(|| "the call takes no extension, and pNext is not NULL");
        if self.is_null() { Ok(()) } else { Err(refused()) }
    }

    /// The first structure of type `U` in a chain that begins here.
    pub(crate) fn find<U: Extension>(self) -> Option<In<U>> {
        self.as_a::<U>().or_else(|| self.next_of::<U>())
    }

    /// This structure, if it is of type `U`.
    pub(crate) fn as_a<U: Extension>(self) -> Option<In<U>> {
        (self.read().ok()?.s_type == U::S_TYPE).then(|| In(self.0.cast()))
    }
}

impl In<usize> {
    /// The sizes of an array argument, each of which describes the memory of a pointer of the same call.
    pub(crate) fn sizes(self, count: Argument<u32>) -> Outcome<Vec<Argument<usize>>> {
        Ok(self.elements(count)?.map(Argument).collect())
    }
}

impl In<u8> {
    /// A copy of the `size` bytes that an argument points to, or `INVALID_NULL_POINTER`.
    ///
    /// # Safety
    /// ze_api.h must promise that many bytes.
    pub(crate) unsafe fn bytes(self, size: usize) -> Outcome<Box<[u8]>> {
        self.check()?;
        // SAFETY: the caller promises it.
        Ok(unsafe { std::slice::from_raw_parts(self.0, size) }.into())
    }
}

#[expect(private_bounds, reason = "only this crate implements the trait")]
impl<T: Object> In<Handle<T>> {
    /// The live objects of an array of handles; an error of [`Handle::get`] for the first that is not live.
    pub(crate) fn objects(self, count: Argument<u32>) -> Outcome<Vec<Arc<T>>> {
        self.each_object(count)?.collect()
    }

    /// The live objects of an array of handles, one by one.
    pub(crate) fn each_object(self, count: Argument<u32>) -> Outcome<impl Iterator<Item = Outcome<Arc<T>>>> {
        Ok(self.elements(count)?.map(Handle::get))
    }

    /// The live objects of an array of handles, and `None` for NULL.
    pub(crate) fn optional_objects(self, count: Argument<u32>) -> Outcome<Vec<Option<Arc<T>>>> {
        self.elements(count)?.map(Handle::get_optional).collect()
    }
}

impl In<c_char> {
    /// A C string, or `INVALID_NULL_POINTER`. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(self) -> Outcome<String> {
        self.check()?;
        // SAFETY: the header of the entry point promises a C string for a non-NULL name.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl<T: Copy> Out<T> {
    /// The value that the caller has stored there, or `INVALID_NULL_POINTER`.
    pub(crate) fn read(self) -> Outcome<T> {
        In(self.0.cast_const()).read()
    }

    /// Writes a result, or returns `INVALID_NULL_POINTER`.
    pub(crate) fn write(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: the header of the entry point promises a writable T for a non-NULL argument.
        unsafe { ptr::write_unaligned(self.0, value) };
        Ok(())
    }

    /// Writes a result that the caller may omit.
    pub(crate) fn write_optional(self, value: T) {
        if !self.is_null() {
            // It is not NULL, which is the only error.
            let _ = self.write(value);
        }
    }

    /// Edits the members of a structure that the caller has initialised, or returns `INVALID_NULL_POINTER`.
    pub(crate) fn edit(self, edit: impl FnOnce(&mut T)) -> Outcome {
        // SAFETY: the header of the entry point promises an initialised structure that nobody else uses during the
        // call.
        edit(unsafe { self.0.as_mut() }.ok_or_else(|| null::<T>("writes"))?);
        Ok(())
    }
}

impl<T: Extensible> Out<T> {
    /// The structures in the `pNext` chain of this one.
    fn chain(self) -> impl Iterator<Item = Out<Base>> {
        self.structures(is_structure).take(MAX_CHAIN)
    }

    fn structures(self, is_there: fn(*mut c_void) -> bool) -> impl Iterator<Item = Out<Base>> {
        let next = move |at: Out<Base>| {
            let next = at.read().ok()?.p_next;
            (!next.is_null() && is_there(next)).then_some(Out(next.cast()))
        };
        std::iter::successors(next(Out(self.0.cast())), move |at| next(*at))
    }

    /// The first structure of type `U` in the chain of this one.
    pub(crate) fn next_of<U: Extension>(self) -> Option<Out<U>> {
        let mut chain = self.chain();
        chain.find(|next| next.read().is_ok_and(|base| base.s_type == U::S_TYPE)).map(|found| Out(found.0.cast()))
    }

    /// Edits the first structure of type `U` in the chain of this one, if there is one.
    pub(crate) fn edit_next<U: Extension>(self, edit: impl FnOnce(&mut U)) -> Outcome {
        self.next_of().map_or(Ok(()), |next| next.edit(edit))
    }
}

/// Whether a structure can be read at a `pNext`. Intel SHMEM 1.6.0 leaves it uninitialised, so it may be any number.
fn is_structure(next: *mut c_void) -> bool {
    let is_there = process::can_read(next, size_of::<Base>());
    if !is_there {
        log::note_once("pNext", "leads to no memory; the chain ends there");
    }
    is_there
}

#[expect(private_bounds, reason = "only this crate implements the trait")]
impl<T: Copy + ByteSized> Out<T> {
    /// Implements the byte query of ze_api.h: `size` receives the number of bytes. At most the number that
    /// was in `size` before is stored; nothing without an array.
    pub(crate) fn copy_bytes(self, size: Out<usize>, bytes: &[u8]) -> Outcome {
        if !self.is_null() {
            self.store(size.read()?, bytes);
        }
        size.write(bytes.len())
    }

    /// Stores at most as many bytes as the size argument of the entry point allows; nothing without an array.
    pub(crate) fn store(self, room: usize, bytes: &[u8]) {
        if !self.is_null() {
            // SAFETY: the header of the entry point promises room for as many bytes as its size argument says.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), room.min(bytes.len())) };
        }
    }
}

impl Address {
    /// What a C caller of another interface has passed.
    ///
    /// # Safety
    /// That interface must promise that commands may access the memory there until they have completed.
    pub const unsafe fn new(address: usize) -> Self {
        Self(address)
    }

    /// The address as a number, for lookups.
    pub(crate) const fn number(self) -> usize {
        self.0
    }

    /// `INVALID_NULL_POINTER` for NULL.
    pub(crate) fn check(self) -> Outcome {
        if self.0 == 0 {
            Err(ZeResult::INVALID_NULL_POINTER.because(|| "the address of memory is NULL"))
        } else {
            Ok(())
        }
    }
}

impl Pointer {
    pub(crate) const NULL: Self = Self(0);

    pub(crate) const fn to(address: usize) -> Self {
        Self(address)
    }
}

/// Implements the two-call query of ze_api.h: with a count of 0 or no array, `count` receives the number of items;
/// otherwise `put` stores as many items as fit, and `count` receives how many that were.
pub(crate) fn enumerate<T: Copy, I>(
    count: Out<u32>,
    array: Out<T>,
    items: &[I],
    mut put: impl FnMut(Out<T>, &I) -> Outcome,
) -> Outcome {
    let capacity = count.read()?;
    if capacity == 0 || array.is_null() {
        return count.write(items.len() as u32);
    }
    for (index, item) in items.iter().take(capacity as usize).enumerate() {
        // SAFETY: the caller's array has as many elements as its count says, and `index` is below that.
        put(unsafe { array.element(index) }, item)?;
    }
    count.write(capacity.min(items.len() as u32))
}

/// `text` as a C string of `N` bytes, truncated to fit.
pub(crate) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    for (to, byte) in out.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = byte;
    }
    out
}
