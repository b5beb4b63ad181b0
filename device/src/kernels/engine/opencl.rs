//! The functions and numbers of OpenCL that are used (cl.h, cl_ext.h). Numbers without a comment have their names
//! there, without `CL_`.
//!
//! Must never name a function that OpenCL 2.1 does not require, except by [`Platform`]'s query for extensions.
//!
//! [`Platform`]: super::Engine

use std::ffi::{CStr, c_char, c_int, c_void};

/// A handle of OpenCL: a platform, device, context, queue, program, kernel or event.
pub(super) type Object = *mut c_void;

pub(super) const DEVICE_TYPE_CPU: u64 = 2;
pub(super) const QUEUE_PROPERTIES: u64 = 0x1093;
/// `CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE`.
pub(super) const OUT_OF_ORDER: u64 = 1;
/// `CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL`: a kernel runs in the thread that enqueues it.
pub(super) const IN_THE_CALLER: u64 = 1 << 31;
pub(super) const PROGRAM_BINARY_SIZES: u32 = 0x1165;
pub(super) const PROGRAM_BINARIES: u32 = 0x1166;
pub(super) const PROGRAM_BUILD_LOG: u32 = 0x1183;
pub(super) const KERNEL_WORK_GROUP_SIZE: u32 = 0x11b0;
pub(super) const KERNEL_LOCAL_MEM_SIZE: u32 = 0x11b2;
/// `CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE`.
pub(super) const KERNEL_PREFERRED_MULTIPLE: u32 = 0x11b3;
pub(super) const KERNEL_PRIVATE_MEM_SIZE: u32 = 0x11b4;
/// `CL_KERNEL_SPILL_MEM_SIZE_INTEL`.
pub(super) const KERNEL_SPILL_MEM_SIZE: u32 = 0x4109;
/// `CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE`.
pub(super) const KERNEL_SUB_GROUP_SIZE: u32 = 0x2033;
/// `CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE`.
pub(super) const KERNEL_SUB_GROUP_COUNT: u32 = 0x2034;
/// `CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM`, and `CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL` with its two
/// neighbours for device and shared memory: a kernel may follow any pointer.
pub(super) const KERNEL_MAY_ACCESS: [u32; 4] = [0x11b7, 0x4200, 0x4201, 0x4202];
/// `CL_EVENT_COMMAND_EXECUTION_STATUS`: negative when the command failed.
pub(super) const EVENT_STATUS: u32 = 0x11d3;

macro_rules! functions {
    ($($name:ident as $c_name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of a library that has them all.
        pub(super) struct Functions {
            $(
                #[doc = concat!("`", stringify!($c_name), "`.")]
                pub $name: unsafe extern "C" fn($($argument),*) -> $result,
            )*
        }

        impl Functions {
            /// The functions of an open library, or the name of one that it lacks.
            ///
            /// # Safety
            /// The library must be an OpenCL implementation that stays open.
            pub(super) unsafe fn from_library(library: *mut c_void) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($c_name), "\0");
                        // SAFETY: the name ends with a zero byte.
                        let found = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
                        if found.is_null() {
                            return Err(stringify!($c_name));
                        }
                        // SAFETY: cl.h gives the function of this name this signature.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_platforms as clGetPlatformIDs(u32, *mut Object, *mut u32) -> c_int;
    get_devices as clGetDeviceIDs(Object, u64, u32, *mut Object, *mut u32) -> c_int;
    create_context as clCreateContext(*const isize, u32, *const Object, *mut c_void, *mut c_void, *mut c_int) -> Object;
    create_queue as clCreateCommandQueueWithProperties(Object, Object, *const u64, *mut c_int) -> Object;
    create_program_with_il as clCreateProgramWithIL(Object, *const u8, usize, *mut c_int) -> Object;
    create_program_with_binary as clCreateProgramWithBinary(Object, u32, *const Object, *const usize, *const *const u8, *mut c_int, *mut c_int) -> Object;
    set_constant as clSetProgramSpecializationConstant(Object, u32, usize, *const c_void) -> c_int;
    build_program as clBuildProgram(Object, u32, *const Object, *const c_char, *mut c_void, *mut c_void) -> c_int;
    compile_program as clCompileProgram(Object, u32, *const Object, *const c_char, u32, *const Object, *const *const c_char, *mut c_void, *mut c_void) -> c_int;
    link_program as clLinkProgram(Object, u32, *const Object, *const c_char, u32, *const Object, *mut c_void, *mut c_void, *mut c_int) -> Object;
    get_program_info as clGetProgramInfo(Object, u32, usize, *mut c_void, *mut usize) -> c_int;
    get_build_info as clGetProgramBuildInfo(Object, Object, u32, usize, *mut c_void, *mut usize) -> c_int;
    release_program as clReleaseProgram(Object) -> c_int;
    create_kernel as clCreateKernel(Object, *const c_char, *mut c_int) -> Object;
    release_kernel as clReleaseKernel(Object) -> c_int;
    set_argument as clSetKernelArg(Object, u32, usize, *const c_void) -> c_int;
    set_argument_pointer as clSetKernelArgSVMPointer(Object, u32, *const c_void) -> c_int;
    set_exec_info as clSetKernelExecInfo(Object, u32, usize, *const c_void) -> c_int;
    get_work_group_info as clGetKernelWorkGroupInfo(Object, Object, u32, usize, *mut c_void, *mut usize) -> c_int;
    get_sub_group_info as clGetKernelSubGroupInfo(Object, Object, u32, usize, *const c_void, usize, *mut c_void, *mut usize) -> c_int;
    enqueue as clEnqueueNDRangeKernel(Object, Object, u32, *const usize, *const usize, *const usize, u32, *const Object, *mut Object) -> c_int;
    wait as clWaitForEvents(u32, *const Object) -> c_int;
    get_event_info as clGetEventInfo(Object, u32, usize, *mut c_void, *mut usize) -> c_int;
    release_event as clReleaseEvent(Object) -> c_int;
    get_extension_function as clGetExtensionFunctionAddressForPlatform(Object, *const c_char) -> *mut c_void;
}

/// `clGetDeviceGlobalVariablePointerINTEL` (cl_intel_global_variable_pointers): size and address of a variable.
pub(super) type GlobalPointer = unsafe extern "C" fn(Object, Object, *const c_char, *mut usize, *mut Object) -> c_int;
/// The name of [`GlobalPointer`].
pub(super) const GLOBAL_POINTER: &CStr = c"clGetDeviceGlobalVariablePointerINTEL";
/// `clGetDeviceFunctionPointerINTEL` (cl_intel_function_pointers): address of a function.
pub(super) type FunctionPointer = unsafe extern "C" fn(Object, Object, *const c_char, *mut u64) -> c_int;
/// The name of [`FunctionPointer`].
pub(super) const FUNCTION_POINTER: &CStr = c"clGetDeviceFunctionPointerINTEL";
