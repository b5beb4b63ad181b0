//! The arguments of the C functions, as types.
//!
//! A value of [`In`] or [`Out`] exists only because a C caller passed it. So what cuda.h promises about that argument
//! holds for the value, and the methods here rely on it once they have checked for NULL.

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::result::{Code, Outcome};

/// `const T*`: something that the call reads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

/// `T*`: something that the call writes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> In<T> {
    /// The value, or `INVALID_VALUE` for NULL.
    pub(crate) fn read(self) -> Outcome<T> {
        self.element(0)
    }

    /// The element of an array with this index, or `INVALID_VALUE` for NULL. cuda.h must promise that many.
    pub(crate) fn element(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: cuda.h promises readable values for an argument that is not NULL.
        Ok(unsafe { ptr::read_unaligned(self.0.add(index)) })
    }
}

impl In<c_char> {
    /// A C string, or `INVALID_VALUE` for NULL.
    pub(crate) fn text(self) -> Outcome<String> {
        self.read()?;
        // SAFETY: cuda.h promises a C string for an argument that is not NULL.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl<T: Copy> Out<T> {
    /// `INVALID_VALUE` for NULL.
    pub(crate) fn check(self) -> Outcome {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes a result, or returns `INVALID_VALUE` for NULL.
    pub(crate) fn write(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: cuda.h promises a writable value for an argument that is not NULL.
        unsafe { ptr::write_unaligned(self.0, value) };
        Ok(())
    }

    /// Writes a result that the caller may omit.
    pub(crate) fn write_optional(self, value: T) {
        // The only error is NULL, which means omitted.
        let _ = self.write(value);
    }

    /// The element of an array with this index. cuda.h must promise that many.
    pub(crate) fn element(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// The same place for a value of another type, which cuda.h must promise.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}
