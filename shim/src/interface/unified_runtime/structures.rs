//! Reads structures of Unified Runtime.

use std::ptr::with_exposed_provenance;

use urscope_schema::api::role::Sources;
use urscope_schema::api::unified_runtime::constants::{
    UR_EVENT_INFO_COMMAND_EXECUTION_STATUS, UR_EVENT_STATUS_COMPLETE, UR_QUEUE_FLAG_OUT_OF_ORDER_EXEC_MODE_ENABLE,
    UR_QUEUE_INFO_EMPTY,
};
use urscope_schema::api::unified_runtime::structures;
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

    fn makes_out_of_order(&self, sources: &Sources) -> Option<bool> {
        let properties = sources.structures.get(structures::QUEUE_PROPERTIES) as usize;
        let flags = if properties == 0 { Some(0) } else { read::<u32>(properties.wrapping_add(FLAGS)) };
        let has_flag = flags.is_none_or(|flags| flags & UR_QUEUE_FLAG_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0);
        Some(has_flag || self.makes_native(sources))
    }

    fn makes_native(&self, sources: &Sources) -> bool {
        sources.structures.get(structures::NATIVE_QUEUE) != 0
    }

    fn wait_list(&self, sources: &Sources) -> (usize, usize) {
        let of = |kind| sources.structures.get(kind) as usize;
        let events = of(structures::WAIT_LIST);
        (events, if events == 0 { 0 } else { of(structures::WAIT_COUNT) })
    }

    fn signals(&self, sources: &Sources) -> bool {
        sources.structures.get(structures::OUT_EVENT) != 0
    }

    fn signalled(&self, sources: &Sources) -> usize {
        let variable = sources.structures.get(structures::OUT_EVENT) as usize;
        // SAFETY: the adapter has written a handle to the caller's variable (`ur_api.h`).
        if variable == 0 { 0 } else { unsafe { with_exposed_provenance::<usize>(variable).read_unaligned() } }
    }

    fn shows_signalled(&self, sources: &Sources) -> bool {
        let value = sources.structures.get(structures::STATE_VALUE) as usize;
        let property = sources.structures.get(structures::STATE_PROPERTY) as u32;
        let is_asked = if sources.event == 0 { UR_QUEUE_INFO_EMPTY } else { UR_EVENT_INFO_COMMAND_EXECUTION_STATUS };
        if value == 0 || property != is_asked {
            return false;
        }
        // A `ur_bool_t` is a byte.
        match sources.event {
            0 => read::<u8>(value).is_some_and(|is_empty| is_empty != 0),
            _ => read::<u32>(value) == Some(UR_EVENT_STATUS_COMPLETE),
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
