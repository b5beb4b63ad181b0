//! References to objects of SYCL, as dpctl's interface passes them.
//!
//! Only C makes one: whoever passes it promises that it is an object of the libsycl that dpctl uses, and lives until
//! the call returns. In C each is a pointer, which is `None` here if it is null.

use std::{ffi::c_void, ptr::NonNull};

macro_rules! references {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(NonNull<c_void>);

        impl $name {
            /// The argument of a C++ function that takes it.
            pub(crate) fn word(self) -> usize {
                self.0.as_ptr().expose_provenance()
            }
        }
    )*};
}

references! {
    /// A `sycl::context`.
    ContextRef;
    /// A `sycl::device`.
    DeviceRef;
    /// A `sycl::queue`.
    QueueRef;
    /// A `sycl::event`.
    EventRef;
}

/// A caller's argument that must not be null.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, String> {
    argument.ok_or_else(|| format!("{name} is null"))
}
