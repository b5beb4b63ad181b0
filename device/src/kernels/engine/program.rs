//! Programs and functions of the engine.
//!
//! Must never offer a call that takes an address from anything but an argument of a kernel.

use std::ffi::{CString, c_int, c_void};
use std::mem;
use std::ptr::{null, null_mut};

use super::opencl::{self, Object};
use super::{Engine, guarded};

/// An error code of OpenCL, below 0.
pub(crate) type Failure = c_int;

/// A program: compiled, or built or linked and so ready for its functions.
pub(crate) struct Program {
    engine: &'static Engine,
    object: Object,
}

/// A kernel of a program, with arguments of its own.
pub(crate) struct Function {
    engine: &'static Engine,
    object: Object,
}

/// The properties of a compiled kernel (`clGetKernelWorkGroupInfo`, `clGetKernelSubGroupInfo`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompiledKernelInfo {
    /// Largest number of work items in a group.
    pub largest_group: usize,
    /// The number of work items of which a group should have a multiple.
    pub preferred_multiple: usize,
    /// Local memory that the kernel declares itself, in bytes.
    pub local_memory: u64,
    /// Private memory of a work item, in bytes.
    pub private_memory: u64,
    /// Spilled registers of a work item, in bytes.
    pub spilled_memory: u64,
    /// Work items of a sub-group, in the largest group.
    pub sub_group_size: usize,
    /// Sub-groups of the largest group.
    pub sub_groups: usize,
}

// SAFETY: a program may be used by all threads (OpenCL specification, appendix A).
unsafe impl Send for Program {}
// SAFETY: the same.
unsafe impl Sync for Program {}
// SAFETY: a kernel may be used by any thread, one at a time, which `&mut` of the functions that set arguments demands.
unsafe impl Send for Function {}

impl Program {
    /// A program of SPIR-V, not yet built.
    pub(crate) fn from_spirv(engine: &'static Engine, code: &[u8]) -> Result<Self, Failure> {
        let mut error = 0;
        let object = guarded(|| {
            // SAFETY: pointer and length are those of the slice.
            unsafe { (engine.cl.create_program_with_il)(engine.context, code.as_ptr(), code.len(), &raw mut error) }
        });
        Self::made(engine, object, error)
    }

    /// A built program, from a binary that [`Program::binary`] has returned in this process.
    pub(crate) fn from_binary(engine: &'static Engine, binary: &[u8]) -> Result<Self, Failure> {
        let mut status = 0;
        let mut error = 0;
        let length = binary.len();
        let start = binary.as_ptr();
        // SAFETY: one device, with one length and one pointer, those of the slice.
        let object = unsafe {
            (engine.cl.create_program_with_binary)(
                engine.context,
                1,
                &raw const engine.device,
                &raw const length,
                &raw const start,
                &raw mut status,
                &raw mut error,
            )
        };
        let program = Self::made(engine, object, error)?;
        program.build("")?;
        Ok(program)
    }

    /// Links compiled programs. With an error there may be a program, which has a log.
    pub(crate) fn linked(engine: &'static Engine, parts: &[Self]) -> (Option<Self>, Result<(), Failure>) {
        let objects: Vec<_> = parts.iter().map(|part| part.object).collect();
        let mut error = 0;
        let object = guarded(|| {
            // SAFETY: one device, and as many live programs as the array has.
            unsafe {
                (engine.cl.link_program)(
                    engine.context,
                    1,
                    &raw const engine.device,
                    c"".as_ptr(),
                    objects.len() as u32,
                    objects.as_ptr(),
                    null_mut(),
                    null_mut(),
                    &raw mut error,
                )
            }
        });
        let program = (!object.is_null()).then_some(Self { engine, object });
        (program, if error == 0 { Ok(()) } else { Err(error) })
    }

    fn made(engine: &'static Engine, object: Object, error: c_int) -> Result<Self, Failure> {
        if object.is_null() || error != 0 { Err(error) } else { Ok(Self { engine, object }) }
    }

    /// Sets a specialisation constant, before the program is built.
    pub(crate) fn set_constant(&self, number: u32, value: &[u8]) -> Result<(), Failure> {
        // SAFETY: pointer and length are those of the slice.
        outcome(unsafe { (self.engine.cl.set_constant)(self.object, number, value.len(), value.as_ptr().cast()) })
    }

    /// Compiles and links.
    pub(crate) fn build(&self, options: &str) -> Result<(), Failure> {
        let options = CString::new(options).unwrap_or_default();
        let device = &raw const self.engine.device;
        // SAFETY: one device, and a C string.
        outcome(guarded(|| unsafe {
            (self.engine.cl.build_program)(self.object, 1, device, options.as_ptr(), null_mut(), null_mut())
        }))
    }

    /// Compiles, for a link.
    pub(crate) fn compile(&self, options: &str) -> Result<(), Failure> {
        let options = CString::new(options).unwrap_or_default();
        let cl = &self.engine.cl;
        let device = &raw const self.engine.device;
        // SAFETY: one device, a C string, and no headers.
        outcome(guarded(|| unsafe {
            (cl.compile_program)(self.object, 1, device, options.as_ptr(), 0, null(), null(), null_mut(), null_mut())
        }))
    }

    /// The log of compiling or linking.
    pub(crate) fn log(&self) -> String {
        let cl = &self.engine.cl;
        let device = self.engine.device;
        let mut size = 0;
        // SAFETY: the first call writes a size, the second as many bytes as there is room for.
        let bytes = unsafe {
            (cl.get_build_info)(self.object, device, opencl::PROGRAM_BUILD_LOG, 0, null_mut(), &raw mut size);
            let mut bytes = vec![0_u8; size];
            let place = bytes.as_mut_ptr().cast();
            (cl.get_build_info)(self.object, device, opencl::PROGRAM_BUILD_LOG, size, place, null_mut());
            bytes
        };
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned()
    }

    /// The binary of the program, for [`Program::from_binary`].
    pub(crate) fn binary(&self) -> Option<Vec<u8>> {
        let cl = &self.engine.cl;
        let mut size = 0_usize;
        let length = size_of::<usize>();
        // SAFETY: the program has one device, so one size and then one pointer to as many bytes are exchanged.
        unsafe {
            let place = (&raw mut size).cast();
            if (cl.get_program_info)(self.object, opencl::PROGRAM_BINARY_SIZES, length, place, null_mut()) != 0 {
                return None;
            }
            let mut bytes = vec![0_u8; size];
            let mut start = bytes.as_mut_ptr();
            let place = (&raw mut start).cast();
            let done = (cl.get_program_info)(self.object, opencl::PROGRAM_BINARIES, length, place, null_mut());
            (size > 0 && done == 0).then_some(bytes)
        }
    }

    pub(crate) fn function(&self, name: &str) -> Result<Function, Failure> {
        let name = CString::new(name).unwrap_or_default();
        let engine = self.engine;
        let mut error = 0;
        // SAFETY: the program is live, and the name is a C string.
        let object = unsafe { (engine.cl.create_kernel)(self.object, name.as_ptr(), &raw mut error) };
        if object.is_null() || error != 0 {
            return Err(error);
        }
        for what in opencl::KERNEL_MAY_ACCESS {
            let yes = 1_u32;
            // An engine that does not know one of them needs none: the pointers of this device are those of the host.
            // SAFETY: the value is a cl_bool.
            unsafe { (engine.cl.set_exec_info)(object, what, size_of::<u32>(), (&raw const yes).cast()) };
        }
        Ok(Function { engine, object })
    }

    /// Address and size in bytes of a global variable. `None` if there is none of this name, or the engine cannot say.
    pub(crate) fn global(&self, name: &str) -> Option<(usize, usize)> {
        let name = CString::new(name).ok()?;
        let found = self.engine.extension(opencl::GLOBAL_POINTER)?;
        let mut size = 0;
        let mut address = null_mut();
        // SAFETY: the extension gives the function of this name this signature.
        let code = unsafe {
            let call = mem::transmute::<*mut c_void, opencl::GlobalPointer>(found);
            call(self.engine.device, self.object, name.as_ptr(), &raw mut size, &raw mut address)
        };
        (code == 0).then_some((address as usize, size))
    }

    /// Address of a function that a kernel may call. `None` as for [`Program::global`].
    pub(crate) fn function_address(&self, name: &str) -> Option<usize> {
        let name = CString::new(name).ok()?;
        let found = self.engine.extension(opencl::FUNCTION_POINTER)?;
        let mut address = 0;
        // SAFETY: the extension gives the function of this name this signature.
        let code = unsafe {
            let call = mem::transmute::<*mut c_void, opencl::FunctionPointer>(found);
            call(self.engine.device, self.object, name.as_ptr(), &raw mut address)
        };
        (code == 0).then_some(address as usize)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: this object holds the only reference to the program that it has created.
        unsafe { (self.engine.cl.release_program)(self.object) };
    }
}

impl Function {
    pub(crate) fn info(&self) -> CompiledKernelInfo {
        let largest_group = self.group_info::<usize>(opencl::KERNEL_WORK_GROUP_SIZE);
        CompiledKernelInfo {
            largest_group,
            preferred_multiple: self.group_info::<usize>(opencl::KERNEL_PREFERRED_MULTIPLE),
            local_memory: self.group_info(opencl::KERNEL_LOCAL_MEM_SIZE),
            private_memory: self.group_info(opencl::KERNEL_PRIVATE_MEM_SIZE),
            spilled_memory: self.group_info(opencl::KERNEL_SPILL_MEM_SIZE),
            sub_group_size: self.sub_group_info(opencl::KERNEL_SUB_GROUP_SIZE, largest_group),
            sub_groups: self.sub_group_info(opencl::KERNEL_SUB_GROUP_COUNT, largest_group),
        }
    }

    fn group_info<T: Default>(&self, what: u32) -> T {
        let mut value = T::default();
        let cl = &self.engine.cl;
        let place = (&raw mut value).cast();
        // SAFETY: at most as many bytes are written as T has. A query that fails writes nothing.
        unsafe {
            (cl.get_work_group_info)(self.object, self.engine.device, what, size_of::<T>(), place, null_mut());
        }
        value
    }

    fn sub_group_info(&self, what: u32, group: usize) -> usize {
        let input = [group, 1, 1];
        let mut value = 0_usize;
        let cl = &self.engine.cl;
        let place = (&raw mut value).cast();
        let size = size_of::<usize>();
        let input_size = size_of_val(&input);
        // SAFETY: the query takes three sizes and writes one.
        unsafe {
            let input = input.as_ptr().cast();
            (cl.get_sub_group_info)(self.object, self.engine.device, what, input_size, input, size, place, null_mut());
        }
        value
    }

    pub(crate) fn set_value(&mut self, index: u32, value: &[u8]) -> Result<(), Failure> {
        // SAFETY: pointer and length are those of the slice.
        outcome(unsafe { (self.engine.cl.set_argument)(self.object, index, value.len(), value.as_ptr().cast()) })
    }

    pub(crate) fn set_pointer(&mut self, index: u32, address: usize) -> Result<(), Failure> {
        // SAFETY: the engine keeps the address as a number. What the kernel does with it is the application's choice.
        outcome(unsafe { (self.engine.cl.set_argument_pointer)(self.object, index, address as *const c_void) })
    }

    /// Sets an argument that is local memory of `size` bytes.
    pub(crate) fn set_local(&mut self, index: u32, size: usize) -> Result<(), Failure> {
        // SAFETY: without a pointer, only the size is used.
        outcome(unsafe { (self.engine.cl.set_argument)(self.object, index, size, null()) })
    }

    /// Runs it, and returns when all work items have ended. All arguments must have been set. Without a
    /// size of groups the engine chooses one. With `inline`, it runs in this thread.
    pub(crate) fn run(
        &mut self,
        offset: [usize; 3],
        global: [usize; 3],
        group: Option<[usize; 3]>,
        inline: bool,
    ) -> Result<(), Failure> {
        let cl = &self.engine.cl;
        let queue = if inline { self.engine.inline } else { self.engine.parallel };
        let mut event = null_mut();
        let mut status = 0;
        // SAFETY: three dimensions each, or none for the groups, and a place for an event, which is released.
        // What the kernel accesses is what the application has passed to it.
        unsafe {
            let group = group.as_ref().map_or(null(), |group| group.as_ptr());
            let offset = offset.as_ptr();
            let global = global.as_ptr();
            outcome((cl.enqueue)(queue, self.object, 3, offset, global, group, 0, null(), &raw mut event))?;
            let waited = (cl.wait)(1, &raw const event);
            let place = (&raw mut status).cast();
            (cl.get_event_info)(event, opencl::EVENT_STATUS, size_of::<c_int>(), place, null_mut());
            (cl.release_event)(event);
            outcome(waited)?;
        }
        outcome(status.min(0))
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // SAFETY: this object holds the only reference to the kernel that it has created.
        unsafe { (self.engine.cl.release_kernel)(self.object) };
    }
}

fn outcome(code: c_int) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(code) }
}
