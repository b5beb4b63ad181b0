//! The arguments of kernels that are launched by the CUDA driver.
//!
//! A launch passes the address of each argument, and neither number, sizes nor types. The driver knows the sizes
//! (`cuFuncGetParamInfo`, since CUDA 12.4). An argument may be a structure with pointers in it, so that each aligned word
//! may be one.

use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicPtr, Ordering};

type ParamInfo = unsafe extern "C" fn(usize, usize, *mut usize, *mut usize) -> c_int;

/// The driver's `cuFuncGetParamInfo`; null if it has none.
static PARAM_INFO: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Makes the driver's `cuFuncGetParamInfo` known, if it has one. A library in front of the driver has none.
///
/// # Safety
///
/// `function` is null or that function (`cuda.h`).
pub(crate) unsafe fn set_param_info(function: *mut c_void) {
    if !function.is_null() {
        PARAM_INFO.store(function, Ordering::Release);
    }
}

/// The size of a kernel's parameter in bytes; `None` behind the last one, or if it is not known.
fn size(kernel: usize, index: usize) -> Option<usize> {
    let function = PARAM_INFO.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    let (mut offset, mut size) = (0, 0);
    // SAFETY: the stored function has this signature. The caller of the launch passes the kernel to the driver, which
    // refuses an index that it does not have.
    let result = unsafe {
        let function = std::mem::transmute::<*mut c_void, ParamInfo>(function);
        function(kernel, index, &raw mut offset, &raw mut size)
    };
    (result == 0).then_some(size)
}

/// The aligned words of the arguments of a launch of `kernel`. `params` is 0 or the address of the list of their addresses.
pub(super) fn words(kernel: usize, params: usize) -> impl Iterator<Item = u64> {
    let parameters = (0..).take_while(move |_| params != 0).map_while(move |index| Some((index, size(kernel, index)?)));
    parameters.flat_map(move |(index, size)| {
        // SAFETY: the caller passes the addresses of as many arguments as the kernel has to the driver, which is about to read them.
        let argument = unsafe { with_exposed_provenance::<usize>(params).add(index).read_unaligned() };
        (0..size / size_of::<u64>()).map(move |word| {
            // SAFETY: as above; the argument has so many words.
            unsafe { with_exposed_provenance::<u64>(argument).add(word).read_unaligned() }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with parameters of 4, 24, 8 and 12 bytes.
    ///
    /// # Safety
    ///
    /// `size` is a variable.
    unsafe extern "C" fn param_info(kernel: usize, index: usize, _offset: *mut usize, size: *mut usize) -> c_int {
        let Some(known) = [4, 24, 8, 12].get(index).filter(|_| kernel == 7) else { return 1 };
        // SAFETY: the caller's promise.
        unsafe { *size = *known };
        0
    }

    #[test]
    fn each_word_of_each_argument_may_be_a_pointer() {
        let (number, structure, pointer, odd) = (1_u32, [2_u64, 3, 4], 5_u64, [6_u32, 0, 7]);
        let addresses = [
            (&raw const number).cast::<()>(),
            (&raw const structure).cast(),
            (&raw const pointer).cast(),
            odd.as_ptr().cast(),
        ];
        let list = addresses.as_ptr().expose_provenance();
        for address in &addresses {
            _ = address.expose_provenance();
        }
        let found = |kernel, list| words(kernel, list).collect::<Vec<_>>();
        assert_eq!(found(7, list), [0; 0], "the sizes are not known");
        // SAFETY: it has that signature.
        unsafe { set_param_info(param_info as *mut c_void) };
        // SAFETY: null, which changes nothing.
        unsafe { set_param_info(null_mut()) };
        assert_eq!(found(7, list), [2, 3, 4, 5, 6]);
        assert_eq!((found(8, list), found(7, 0)), (vec![], vec![]));
    }
}
