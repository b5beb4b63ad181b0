//! Reads structures of Unified Runtime.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::{role::Sources, unified_runtime::structures};
use urscope_schema::call::Values;

use crate::raw::args::{inputs::FLAGS, reader::Reader};

/// A `ur_exp_kernel_arg_properties_t` (`ur_api.h`). The value is a union whose largest member has two words.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelArgument {
    stype: u32,
    next: usize,
    kind: u32,
    index: u32,
    size: usize,
    value: u64,
    more: u64,
}

/// `UR_EXP_KERNEL_ARG_TYPE_POINTER`.
const KERNEL_ARG_TYPE_POINTER: u32 = 1;

/// The structures of Unified Runtime.
#[derive(Debug)]
pub(super) struct Structures;

impl Reader for Structures {
    fn describe(&self, sources: &Sources, values: &mut Values) {
        let desc = sources.structures.get(structures::USM_DESC) as usize;
        if desc != 0 {
            let hints = with_exposed_provenance::<u32>(desc + FLAGS);
            // SAFETY: the caller passes a `ur_usm_desc_t` to the adapter, which is about to read it. Its `hints` are where others have flags.
            let hints = u64::from(unsafe { hints.read_unaligned() });
            // A SYCL program passes a description with every allocation, and nearly all of them ask for nothing.
            values.flags = Some(hints).filter(|hints| *hints != 0);
        }
    }

    fn answers(&self, sources: &Sources, values: &mut Values) {
        let answer = sources.structures.get(structures::OUT_BOOL) as usize;
        if answer != 0 {
            // SAFETY: the call succeeded, so the caller's variable holds a `ur_bool_t`, one byte (`urDeviceGetInfo`).
            values.value = Some(u64::from(unsafe { with_exposed_provenance::<u8>(answer).read() }));
        }
    }

    fn kernel_pointers(&self, sources: &Sources, visit: &mut dyn FnMut(u64)) -> bool {
        let arguments = sources.structures.get(structures::KERNEL_ARGS) as usize;
        let count = if arguments == 0 { 0 } else { sources.structures.get(structures::KERNEL_ARG_COUNT) as usize };
        for place in 0..count {
            let argument = with_exposed_provenance::<KernelArgument>(arguments);
            // SAFETY: the caller passes a list of so many to the adapter, which is about to read them.
            let KernelArgument { kind, value, .. } = unsafe { argument.add(place).read_unaligned() };
            if kind == KERNEL_ARG_TYPE_POINTER {
                visit(value);
            }
        }
        true
    }
}
