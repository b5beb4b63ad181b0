//! Kernels and the entry points about them, except those that launch them (`commands::launch`).
//!
//! Must never set an argument in the engine here: an append takes the arguments as they are then, and the launch sets
//! them when it runs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::{ffi::c_char, sync::Arc};

use parking_lot::Mutex;

use super::engine::{CompiledKernelInfo, Function};
use super::launch::{Argument, Settings};
use super::{module::Module, spirv::KernelInfo};
use crate::discovery::properties::LARGEST_GROUP;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{KernelDesc, KernelMaxGroupSize, KernelPreferredGroupSize, KernelProperties};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown, getters};
use crate::ffi::{Address, In, Out};

/// Groups are not suggested to be larger than this: more groups keep more processors busy.
const MAX_SUGGESTED_GROUP: u32 = 256;

/// The object of a `ze_kernel_handle_t`.
pub struct Kernel {
    pub(crate) name: Arc<str>,
    /// Its properties in the SPIR-V module.
    pub(crate) info: KernelInfo,
    compiled: CompiledKernelInfo,
    /// Functions of the engine that no launch uses now.
    idle: Mutex<Vec<Function>>,
    pub(crate) settings: Mutex<Settings>,
    module: Arc<Module>,
}

object!(Kernel);

impl Kernel {
    /// Runs `body` with a function of the engine that no other launch uses meanwhile.
    pub(super) fn with_function<T>(&self, body: impl FnOnce(&mut Function) -> Result<T, i32>) -> Result<T, i32> {
        let idle = self.idle.lock().pop();
        let mut function = match idle {
            Some(function) => function,
            None => self.module.program().map_err(|_| 0).and_then(|program| program.function(&self.name))?,
        };
        let result = body(&mut function);
        self.idle.lock().push(function);
        result
    }

    /// `INVALID_GROUP_SIZE_DIMENSION` for a group size that the kernel does not run with.
    pub(crate) fn check_group(&self, group: [u32; 3]) -> Outcome {
        let items = group.iter().try_fold(1_usize, |items, size| items.checked_mul(*size as usize));
        let fits = items.is_some_and(|items| (1..=self.largest_group()).contains(&items));
        let required = self.info.group;
        if fits && (required == [0; 3] || required == group) {
            Ok(())
        } else {
            Err(ZeResult::INVALID_GROUP_SIZE_DIMENSION)
        }
    }

    /// Sets an argument of `size` bytes in settings for this kernel: `INVALID_KERNEL_ARGUMENT_INDEX`, or an error of
    /// [`Argument::set`].
    pub(crate) fn set_argument(&self, settings: &mut Settings, index: usize, size: usize, value: In<u8>) -> Outcome {
        let place = self.info.parameters.get(index).zip(settings.arguments.get_mut(index));
        let (parameter, place) = place.ok_or(ZeResult::INVALID_KERNEL_ARGUMENT_INDEX)?;
        *place = Argument::set(*parameter, size, value).map_err(|code| {
            code.because(|| format!("kernel {}: {size} bytes for argument {index}, which is {parameter:?}", self.name))
        })?;
        Ok(())
    }

    fn largest_group(&self) -> usize {
        let allowed = if self.info.largest == 0 { LARGEST_GROUP } else { self.info.largest.min(LARGEST_GROUP) };
        self.compiled.largest_group.min(allowed as usize)
    }

    /// 16 bytes for the kernel and 16 for its module.
    fn uuid(&self) -> [u8; 32] {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        let mut uuid = [0; 32];
        let own = hasher.finish().to_le_bytes();
        let module = self.module.identity().to_le_bytes();
        for (to, byte) in uuid.iter_mut().zip(own.into_iter().chain([0; 8]).chain(module)) {
            *to = byte;
        }
        uuid
    }
}

/// `zeKernelCreate` (ze_api.h).
pub extern "C" fn create(module: Handle<Module>, desc: In<KernelDesc>, kernel: Out<Handle<Kernel>>) -> ZeResult {
    call(|| {
        let module = module.get()?;
        let name = desc.member(|desc| desc.name)?.text()?;
        kernel.check()?;
        let program = module.program()?;
        let info = module.info.kernels.get(&name).cloned().ok_or(ZeResult::INVALID_KERNEL_NAME)?;
        let function = program.function(&name).map_err(|code| {
            ZeResult::INVALID_KERNEL_NAME.because(|| format!("the engine has no kernel {name}: OpenCL error {code}"))
        })?;
        let compiled = function.info();
        let name = name.into();
        let settings = Mutex::new(Settings::new(&info));
        let idle = Mutex::new(vec![function]);
        kernel.write(Handle::register(Arc::new(Kernel { name, info, compiled, idle, settings, module })))
    })
}

/// `zeKernelDestroy` (ze_api.h). Launches in flight still complete.
pub extern "C" fn destroy(kernel: Handle<Kernel>) -> ZeResult {
    call_teardown(|| kernel.retire().map(drop))
}

/// `zeKernelSetCacheConfig` (ze_api.h). A hint without effect.
pub extern "C" fn set_cache_config(kernel: Handle<Kernel>, _flags: u32) -> ZeResult {
    call(|| kernel.get().map(drop))
}

/// `zeKernelSchedulingHintExp` (ze_api.h). A hint without effect.
pub extern "C" fn scheduling_hint(kernel: Handle<Kernel>, hint: Address) -> ZeResult {
    call(|| {
        kernel.get()?;
        hint.check()
    })
}

/// `zeKernelSetGroupSize` (ze_api.h).
pub extern "C" fn set_group_size(kernel: Handle<Kernel>, x: u32, y: u32, z: u32) -> ZeResult {
    call(|| {
        let kernel = kernel.get()?;
        kernel.check_group([x, y, z])?;
        kernel.settings.lock().group = [x, y, z];
        Ok(())
    })
}

/// `zeKernelSuggestGroupSize` (ze_api.h). The required group size, or the largest divisors of the three sizes that
/// together make a small group.
pub extern "C" fn suggest_group_size(
    kernel: Handle<Kernel>,
    x: u32,
    y: u32,
    z: u32,
    group_x: Out<u32>,
    group_y: Out<u32>,
    group_z: Out<u32>,
) -> ZeResult {
    call(|| {
        let kernel = kernel.get()?;
        let mut group = kernel.info.group;
        if group == [0; 3] {
            let mut left = MAX_SUGGESTED_GROUP.min(kernel.largest_group() as u32).max(1);
            group = [x, y, z].map(|size| {
                let size = size.max(1);
                let fitting = (1..=left.min(size)).rev().find(|part| size.is_multiple_of(*part)).unwrap_or(1);
                left /= fitting;
                fitting
            });
        }
        let [x, y, z] = group;
        group_x.write(x)?;
        group_y.write(y)?;
        group_z.write(z)
    })
}

getters! {
    /// Always 1: groups need not run at the same time.
    zeKernelSuggestMaxCooperativeGroupCount: suggest_max_cooperative_group_count(_kernel: Kernel) -> u32 { 1 }
    zeKernelGetIndirectAccess: get_indirect_access(kernel: Kernel) -> u32 { kernel.settings.lock().indirect_access }
}

/// `zeKernelSetArgumentValue` (ze_api.h). Without a value, a pointer is NULL, and a value is all zeros: an adapter
/// passes an 8-byte value that is 0 so.
pub extern "C" fn set_argument_value(kernel: Handle<Kernel>, index: u32, size: usize, value: In<u8>) -> ZeResult {
    call(|| {
        let kernel = kernel.get()?;
        kernel.set_argument(&mut kernel.settings.lock(), index as usize, size, value)
    })
}

/// `zeKernelSetIndirectAccess` (ze_api.h). Kept for the query: a kernel may always follow any pointer.
pub extern "C" fn set_indirect_access(kernel: Handle<Kernel>, flags: u32) -> ZeResult {
    call(|| {
        if flags > 0b111 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        kernel.get()?.settings.lock().indirect_access |= flags;
        Ok(())
    })
}

/// `zeKernelSetGlobalOffsetExp` (ze_api.h).
pub extern "C" fn set_global_offset(kernel: Handle<Kernel>, x: u32, y: u32, z: u32) -> ZeResult {
    call(|| {
        kernel.get()?.settings.lock().offset = [x, y, z];
        Ok(())
    })
}

/// `zeKernelGetSourceAttributes` (ze_api.h). The attributes that the module's execution modes name. The
/// size includes the zero byte at the end.
pub extern "C" fn get_source_attributes(kernel: Handle<Kernel>, size: Out<u32>, text: Out<Out<c_char>>) -> ZeResult {
    call(|| {
        let attributes: Vec<u8> = kernel.get()?.info.attributes().into_bytes().into_iter().chain([0]).collect();
        if !text.is_null() {
            text.read()?.store(size.read()? as usize, &attributes);
        }
        size.write(attributes.len() as u32)
    })
}

/// `zeKernelGetName` (ze_api.h). The size includes the zero byte at the end.
pub extern "C" fn get_name(kernel: Handle<Kernel>, size: Out<usize>, name: Out<c_char>) -> ZeResult {
    call(|| {
        let kernel = kernel.get()?;
        let text: Vec<u8> = kernel.name.bytes().chain([0]).collect();
        name.copy_bytes(size, &text)
    })
}

/// `zeKernelGetProperties` (ze_api.h).
pub extern "C" fn get_properties(kernel: Handle<Kernel>, properties: Out<KernelProperties>) -> ZeResult {
    call(|| {
        let kernel = kernel.get()?;
        let info = &kernel.info;
        let compiled = &kernel.compiled;
        properties.edit(|out| {
            out.num_kernel_args = info.parameters.len() as u32;
            out.required_group_size = info.group;
            out.required_num_sub_groups = info.sub_groups;
            out.required_subgroup_size = info.sub_group;
            out.max_subgroup_size = compiled.sub_group_size.max(1) as u32;
            out.max_num_subgroups = compiled.sub_groups.max(1) as u32;
            out.local_mem_size = compiled.local_memory as u32;
            out.private_mem_size = compiled.private_memory as u32;
            out.spill_mem_size = compiled.spilled_memory as u32;
            out.uuid = kernel.uuid();
        })?;
        properties.edit_next(|out: &mut KernelPreferredGroupSize| {
            out.preferred_multiple = compiled.preferred_multiple.max(1) as u32;
        })?;
        properties.edit_next(|out: &mut KernelMaxGroupSize| out.max_group_size = kernel.largest_group() as u32)
    })
}
