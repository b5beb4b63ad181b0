//! Arguments of Unified Runtime's functions, as types that cannot be made from numbers.
//!
//! An argument is an address or a handle, and following a wrong one is undefined behavior. So an [`Arg`] comes from a C
//! caller, from an adapter or from a variable of this module, never from an integer: it may always be passed on.
//! [`row`] has where C passes each argument. [`inputs`] and [`out_params`] access the caller's memory for hooked
//! functions, [`observed`] for observed calls, a [`reader`] structures that only one interface has, and [`caller`] for
//! urscope's backend. No reference to the caller's memory is stored, and `const` inputs are not written to.

use std::ffi::c_void;

use urscope_schema::api::role::Null;
use urscope_schema::api::role::{Adapter, Context, Device, Event, OutParams, PhysicalMem, Role};

pub mod caller;
mod handle_data;
pub mod inputs;
pub mod observed;
pub mod out_params;
pub mod reader;
pub mod row;
mod umf_header;

/// An argument of a call, in the role that the function's row gives it.
///
/// It has the size of the parameter in C, so the signatures of hooked functions consist of these.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg<R>(R);

impl<R: Role> Arg<R> {
    /// An argument made by the shim.
    ///
    /// # Safety
    ///
    /// `role` is null where the function allows that, a handle that the adapter made and that still lives, or the
    /// address of memory that is as large as the role says and stays valid until the call that it is passed to has
    /// returned.
    #[inline]
    pub const unsafe fn new(role: R) -> Self {
        Self(role)
    }

    /// The value that was passed, for records, comparisons and as a key.
    #[inline]
    pub const fn get(self) -> R {
        self.0
    }

    /// The argument to pass on, so that the callee writes its answers `to` these addresses ([`Role::redirected`]).
    #[inline]
    #[must_use]
    pub fn redirected(self, to: &OutParams) -> Self {
        Self(self.0.redirected(to))
    }

    /// What is missing, if the argument is null or zero ([`Role::null`]).
    #[inline]
    pub fn null(self) -> Option<Null> {
        self.0.null()
    }

    /// Whether a call with this argument is recorded ([`Role::watched`]).
    #[inline]
    pub fn watched(self) -> bool {
        self.0.watched()
    }
}

/// A role whose argument is a handle of an adapter.
pub trait HandleRole: Role {
    /// The handle as a number; 0 for null.
    fn word(self) -> usize;
}

macro_rules! handles {
    ($($role:ident)*) => {
        $(impl HandleRole for $role {
            fn word(self) -> usize {
                self.0
            }
        })*
    };
}

handles!(Adapter Device Context PhysicalMem Event);

/// A handle that an adapter made: its first word points at the adapter's dispatch table (since 2025.2).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterHandle(usize);

impl AdapterHandle {
    /// The handle that an adapter has written to an out-parameter; `None` for null.
    ///
    /// # Safety
    ///
    /// `handle` is null or was made by an adapter.
    pub unsafe fn new(handle: usize) -> Option<Self> {
        Some(Self(handle)).filter(|handle| handle.0 != 0)
    }

    /// The adapter's dispatch table.
    pub fn dispatch_table(self) -> *mut c_void {
        // SAFETY: `new` and `Arg::handle` get handles of adapters only, which begin with this pointer.
        unsafe { *std::ptr::with_exposed_provenance::<*mut c_void>(self.0) }
    }
}

impl<R: HandleRole> Arg<R> {
    /// The handle; `None` for null.
    pub fn handle(self) -> Option<AdapterHandle> {
        Some(AdapterHandle(self.0.word())).filter(|handle| handle.0 != 0)
    }
}
