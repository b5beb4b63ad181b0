//! Objects of SYCL that are one `std::shared_ptr`: events and physical memory.
//!
//! libsycl returns them through a place that the caller names, and has no function that ends them: the
//! destructor is inline. What it does is fixed by the ABI of the C++ library, and done here.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

/// An object of SYCL that consists of a shared pointer.
#[repr(C)]
pub struct Shared {
    object: *mut c_void,
    block: *mut Block,
}

// SAFETY: SYCL's objects may be used and ended by any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// `std::_Sp_counted_base<_S_atomic>`
#[repr(C)]
struct Block {
    functions: *const Functions,
    uses: AtomicI32,
    weak: AtomicI32,
}

#[repr(C)]
struct Functions {
    destructors: [*const c_void; 2],
    /// Ends the object. It is `noexcept`.
    dispose: unsafe extern "C" fn(*mut Block),
    /// Ends the block itself.
    destroy: unsafe extern "C" fn(*mut Block),
}

impl Shared {
    /// A place for an object.
    pub(crate) const fn empty() -> Self {
        Self { object: std::ptr::null_mut(), block: std::ptr::null_mut() }
    }

    /// Where it is, for a function that fills it in or uses it.
    pub(crate) fn address(&self) -> usize {
        (&raw const *self).expose_provenance()
    }

    /// Where it is, for a function that fills it in.
    pub(crate) fn place(&mut self) -> usize {
        (&raw mut *self).expose_provenance()
    }
}

impl Drop for Shared {
    /// What the destructor of `std::shared_ptr` does.
    fn drop(&mut self) {
        // SAFETY: null, or the block of a shared pointer that libsycl made and this object owns. Whoever
        // counts the last use down ends the object, and whoever counts the last weak one down the block.
        unsafe {
            let Some(block) = self.block.as_ref() else { return };
            if block.uses.fetch_sub(1, Ordering::AcqRel) == 1 {
                ((*block.functions).dispose)(self.block);
                if block.weak.fetch_sub(1, Ordering::AcqRel) == 1 {
                    ((*block.functions).destroy)(self.block);
                }
            }
        }
    }
}
