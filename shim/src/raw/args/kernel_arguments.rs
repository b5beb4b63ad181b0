//! The arguments of kernels that are launched by the CUDA driver.
//!
//! A launch passes the address of each argument, and neither number, sizes nor types. The driver knows the sizes
//! (`cuFuncGetParamInfo` and `cuKernelGetParamInfo`, since CUDA 12.4). An argument may be a structure with pointers in it, so that each aligned
//! word may be one.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicPtr, Ordering};

type ParamInfo = unsafe extern "C" fn(usize, usize, *mut usize, *mut usize) -> c_int;

/// The driver's functions that tell the size of a parameter: of a `CUfunction`, and of a `CUkernel`, which libcudart passes to a launch in
/// the place of a `CUfunction`. Each refuses the other kind of handle.
pub(crate) const PARAM_INFO: [&CStr; 2] = [c"cuFuncGetParamInfo", c"cuKernelGetParamInfo"];

/// `CUDA_ERROR_INVALID_HANDLE`.
const INVALID_HANDLE: c_int = 400;

/// The functions of [`PARAM_INFO`]; null where the driver has none.
static FUNCTIONS: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// Makes functions of the driver known, where it has them. A library in front of the driver has none.
///
/// # Safety
///
/// Each is null or the function of this name in [`PARAM_INFO`] (`cuda.h`).
pub(crate) unsafe fn set_param_info(functions: [*mut c_void; 2]) {
    for (known, function) in FUNCTIONS.iter().zip(functions).filter(|(_, function)| !function.is_null()) {
        known.store(function, Ordering::Release);
    }
}

/// The size of a kernel's parameter in bytes. The error is that of the driver: for the other kind of handle, or behind the last parameter.
fn size(of: &AtomicPtr<c_void>, kernel: usize, index: usize) -> Result<usize, c_int> {
    let function = of.load(Ordering::Acquire);
    if function.is_null() {
        return Err(INVALID_HANDLE);
    }
    let (mut offset, mut size) = (0, 0);
    // SAFETY: the stored function has this signature. The caller of the launch passes the kernel to the driver, which
    // refuses an index that it does not have.
    let result = unsafe {
        let function = std::mem::transmute::<*mut c_void, ParamInfo>(function);
        function(kernel, index, &raw mut offset, &raw mut size)
    };
    if result == 0 { Ok(size) } else { Err(result) }
}

/// The aligned words of the arguments of a launch of `kernel`. `params` is 0 or the address of the list of their addresses.
pub(super) fn words(kernel: usize, params: usize) -> impl Iterator<Item = u64> {
    let is_its = |of: &&AtomicPtr<c_void>| size(of, kernel, 0) != Err(INVALID_HANDLE);
    let of = if params == 0 { None } else { FUNCTIONS.iter().find(is_its) };
    let sizes = of.into_iter().flat_map(move |of| (0..).map_while(move |index| size(of, kernel, index).ok()));
    sizes.enumerate().flat_map(move |(index, size)| {
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

    /// A kernel with parameters of 4, 24, 8 and 12 bytes, whose handle is `known`.
    ///
    /// # Safety
    ///
    /// `size` is a variable.
    unsafe fn param_info(known: usize, kernel: usize, index: usize, size: *mut usize) -> c_int {
        let Some(bytes) = [4, 24, 8, 12].get(index) else { return 1 };
        if kernel == known {
            // SAFETY: the caller's promise.
            unsafe { *size = *bytes };
        }
        if kernel == known { 0 } else { INVALID_HANDLE }
    }

    unsafe extern "C" fn of_function(kernel: usize, index: usize, _offset: *mut usize, size: *mut usize) -> c_int {
        // SAFETY: as there.
        unsafe { param_info(7, kernel, index, size) }
    }

    unsafe extern "C" fn of_kernel(kernel: usize, index: usize, _offset: *mut usize, size: *mut usize) -> c_int {
        // SAFETY: as there.
        unsafe { param_info(8, kernel, index, size) }
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
        // SAFETY: they have that signature; null changes nothing.
        unsafe {
            set_param_info([of_function as *mut c_void, null_mut()]);
            set_param_info([null_mut(); 2]);
        }
        assert_eq!((found(7, list), found(8, list)), (vec![2, 3, 4, 5, 6], vec![]));
        // SAFETY: as above.
        unsafe { set_param_info([null_mut(), of_kernel as *mut c_void]) };
        for kernel in [7, 8] {
            assert_eq!(found(kernel, list), [2, 3, 4, 5, 6]);
        }
        assert_eq!((found(9, list), found(7, 0)), (vec![], vec![]));
    }
}
