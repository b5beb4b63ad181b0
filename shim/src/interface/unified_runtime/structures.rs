//! Reads structures of Unified Runtime.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::{role::Sources, unified_runtime::structures};
use urscope_schema::call::Values;

use crate::raw::args::{inputs::FLAGS, reader::Reader};
use crate::raw::memory::checked::{read, words};

/// The words of a `ur_exp_kernel_arg_properties_t` (`ur_api.h`), and where its type and its value are.
const KERNEL_ARGUMENT: usize = 6;
const KIND: usize = 2;
const VALUE: usize = 4;

/// `UR_EXP_KERNEL_ARG_TYPE_POINTER`.
const KERNEL_ARG_TYPE_POINTER: u32 = 1;

/// The structures of Unified Runtime.
#[derive(Debug)]
pub(super) struct Structures;

impl Reader for Structures {
    fn describe(&self, sources: &Sources, values: &mut Values) {
        let desc = sources.structures.get(structures::USM_DESC) as usize;
        if desc != 0 {
            // The `hints` are where others have flags. A SYCL program passes a description with every allocation, and
            // nearly all of them ask for nothing.
            values.flags = read::<u32>(desc.wrapping_add(FLAGS)).filter(|hints| *hints != 0).map(u64::from);
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
        let mut kind = 0;
        for (place, word) in words(arguments, count.saturating_mul(KERNEL_ARGUMENT)).enumerate() {
            match place % KERNEL_ARGUMENT {
                KIND => kind = word as u32,
                VALUE if kind == KERNEL_ARG_TYPE_POINTER => visit(word as u64),
                _ => {}
            }
        }
        true
    }
}
