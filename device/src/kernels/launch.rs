//! One execution of a kernel: the arguments as they were when it was appended, and how it runs.
//!
//! Memory that a pointer argument names stays mapped until the launch has ended. Memory that the kernel reaches only
//! through other memory does not: ze_api.h leaves that to the application. Must never run before its turn in a stream.

use std::sync::Arc;

use super::faults::{self, Running};
use super::kernel::Kernel;
use super::spirv::{KernelInfo, Parameter};
use crate::ffi::In;
use crate::ffi::result::{Outcome, ZeResult};
use crate::memory::{self, Retained};

/// A launch with at most this many work items runs in the thread of its stream: waking the engine's threads would take
/// longer.
const FEW_ITEMS: usize = 1024;

/// Groups with fewer items than this leave a part of the processor's vectors empty.
const SMALL_GROUP: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Unset,
    /// The bytes of a value.
    Value(Box<[u8]>),
    Pointer(usize),
    /// Local memory of this size in bytes.
    Local(usize),
}

/// The settings of a kernel for its next launch.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub arguments: Vec<Argument>,
    /// Work items of a group.
    pub group: [u32; 3],
    /// The offset that is added to the number of each work item.
    pub offset: [u32; 3],
    /// `ze_kernel_indirect_access_flags_t`.
    pub indirect_access: u32,
}

/// One execution of a kernel.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) settings: Settings,
    pub(crate) given: Vec<Given>,
}

/// Memory of the device that a pointer argument names.
#[derive(Clone)]
pub(crate) struct Given {
    pub address: usize,
    /// Keeps it mapped.
    pub memory: Retained,
    /// Whether the kernel may write through the pointer.
    pub writes: bool,
}

impl Settings {
    pub(super) fn new(info: &KernelInfo) -> Self {
        let arguments = vec![Argument::Unset; info.parameters.len()];
        let group = if info.group == [0; 3] { [1; 3] } else { info.group };
        Self { arguments, group, offset: [0; 3], indirect_access: 0 }
    }
}

impl Argument {
    /// An argument of `size` bytes, as `zeKernelSetArgumentValue` takes it. `INVALID_KERNEL_ARGUMENT_SIZE`
    /// if the kernel takes a pointer and the size is not that of one, `UNSUPPORTED_FEATURE` for a parameter
    /// that this device does not support. As with Intel's driver, a number may have another size than in
    /// the kernel: extra bytes are ignored (oneMKL passes 8 for numbers of 4), and missing bytes are 0
    /// (Level Zero's conformance tests pass 4 for numbers of 8).
    pub(crate) fn set(parameter: Parameter, size: usize, value: In<u8>) -> Outcome<Self> {
        Ok(match parameter {
            Parameter::Local if value.is_null() && size > 0 => Self::Local(size),
            Parameter::Pointer if value.is_null() => Self::Pointer(0),
            Parameter::Pointer if size == size_of::<usize>() => Self::Pointer(address(value)?),
            Parameter::Value(expected) => {
                let mut bytes =
                    if value.is_null() { Vec::new() } else { constant(value, expected.min(size))?.into_vec() };
                bytes.resize(expected, 0);
                Self::Value(bytes.into())
            }
            Parameter::Unsupported => return Err(ZeResult::UNSUPPORTED_FEATURE),
            _ => return Err(ZeResult::INVALID_KERNEL_ARGUMENT_SIZE),
        })
    }

    /// All arguments of a kernel as `zeCommandListAppendLaunchKernelWithArguments` takes them: a pointer to each, and
    /// to the size of local memory. None without an array.
    pub(crate) fn all(info: &KernelInfo, values: In<In<u8>>) -> Outcome<Option<Vec<Self>>> {
        if values.is_null() {
            return Ok(None);
        }
        let mut arguments = Vec::with_capacity(info.parameters.len());
        for (index, parameter) in info.parameters.iter().enumerate() {
            // SAFETY: ze_api.h promises as many pointers as the kernel has arguments.
            let value = unsafe { values.element(index) }.read()?;
            arguments.push(match parameter {
                Parameter::Local => Self::Local(address(value)?),
                Parameter::Pointer => Self::set(*parameter, size_of::<usize>(), value)?,
                Parameter::Value(size) => Self::set(*parameter, *size, value)?,
                Parameter::Unsupported => return Err(ZeResult::UNSUPPORTED_FEATURE),
            });
        }
        Ok(Some(arguments))
    }

    fn pointer(&self) -> Option<usize> {
        if let Self::Pointer(address) = self { Some(*address) } else { None }
    }
}

impl Launch {
    /// A launch with the current settings of the kernel: `INVALID_ARGUMENT` if an argument is missing.
    pub(crate) fn new(kernel: &Arc<Kernel>) -> Outcome<Self> {
        let launch = Self::with(kernel, kernel.settings.lock().clone());
        if launch.has_all_arguments() { Ok(launch) } else { Err(ZeResult::INVALID_ARGUMENT) }
    }

    /// A launch with these settings, which must not run before it [can](Self::can_run).
    pub(crate) fn with(kernel: &Arc<Kernel>, settings: Settings) -> Self {
        let arguments = settings.arguments.iter().zip(kernel.info.unwritten.iter());
        let given = arguments.filter_map(|(argument, unwritten)| {
            let address = argument.pointer()?;
            Some(Given { address, memory: memory::retain(address)?, writes: !unwritten })
        });
        let given = given.collect();
        Self { kernel: Arc::clone(kernel), settings, given }
    }

    /// Whether all arguments are set, and the kernel runs with the group size.
    pub(crate) fn can_run(&self) -> bool {
        self.has_all_arguments() && self.kernel.check_group(self.settings.group).is_ok()
    }

    fn has_all_arguments(&self) -> bool {
        !self.settings.arguments.iter().any(|argument| matches!(argument, Argument::Unset))
    }

    /// The addresses that its pointer arguments name.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = usize> {
        self.settings.arguments.iter().filter_map(Argument::pointer).filter(|address| *address != 0)
    }

    /// Runs this many groups, and returns when they have ended.
    pub(crate) fn run(&self, groups: [u32; 3]) {
        let Settings { arguments, group, offset, .. } = &self.settings;
        let [group, groups, offset] = [*group, groups, *offset].map(|sizes| sizes.map(|size| size as usize));
        let mut global = group;
        for (size, count) in global.iter_mut().zip(groups) {
            *size *= count;
        }
        let items = global.iter().fold(1_usize, |items, size| items.saturating_mul(*size));
        if items == 0 {
            return;
        }
        let inline = groups == [1; 3] || items <= FEW_ITEMS;
        // Where no kernel can tell the difference, the engine chooses groups that fill its vectors.
        let is_small = group.iter().product::<usize>() < SMALL_GROUP && groups != [1; 3];
        let group = if is_small && self.kernel.info.ungrouped { None } else { Some(group) };
        let _running = Running::new(&self.kernel.name);
        let ran = self.kernel.with_function(|function| {
            for (index, argument) in arguments.iter().enumerate() {
                let index = index as u32;
                match argument {
                    Argument::Value(bytes) => function.set_value(index, bytes)?,
                    Argument::Pointer(address) => function.set_pointer(index, *address)?,
                    Argument::Local(size) => function.set_local(index, *size)?,
                    Argument::Unset => {}
                }
            }
            function.run(offset, global, group, inline)
        });
        if let Err(code) = ran {
            faults::lose(&format!("kernel {} did not run (OpenCL error {code})", self.kernel.name));
        }
    }
}

/// A pointer or a size that an argument of a launch points to.
fn address(value: In<u8>) -> Outcome<usize> {
    let bytes = constant(value, size_of::<usize>())?;
    bytes.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)).ok_or(ZeResult::INVALID_KERNEL_ARGUMENT_SIZE)
}

/// A copy of a value that an application passes for a kernel or a module, with the size that the module gives it.
pub(super) fn constant(value: In<u8>, size: usize) -> Outcome<Box<[u8]>> {
    // SAFETY: ze_api.h promises a value of the type that the module declares, and `size` is the size of that type, or
    // the size that the application has passed with it.
    unsafe { value.bytes(size) }
}
