//! Unified Runtime: `ur_api.h` and `ur_ddi.h`, release 2026.2.

pub mod constants;
mod results;
pub mod roles;
pub mod structures;
#[macro_use]
pub mod rows;

use super::effect::Effect;
use super::interface::{Calls, DefinedFlags, Interface, Library, Promises, ResultCode, Shareable, Words};
use crate::handle::{Kind, UsmType};

/// The version whose functions have the signatures of the rows: 0.12, in all releases from 2025.2 to 2026.2.
pub const VERSION: u32 = 12;

const IPC_EVENT: u64 = constants::UR_EXP_EVENT_FLAG_IPC_EXP as u64;
const IPC_MEM: u64 = constants::UR_PHYSICAL_MEM_FLAG_ENABLE_IPC as u64;

/// The interface. The other ones are described by how they differ from it.
pub static INTERFACE: Interface = Interface {
    name: "Unified Runtime",
    // Its loader may be in libsycl, and is there from the start of a program on: an adapter may be there for some
    // moments only.
    libraries: &[
        Library::opening_devices("libur_", Calls::Own),
        Library::opening_devices("libsycl.", Calls::Own),
        Library::part("libpi_", Calls::Own),
        // Adapters and programs use it.
        Library::part("libumf.", Calls::Forwarded),
    ],
    results: results::RESULTS,
    hex_results: false,
    shareable: &[
        Shareable::by_flag(Kind::Event, IPC_EVENT, "UR_EXP_EVENT_FLAG_IPC_EXP", ResultCode::INVALID_EVENT),
        Shareable::by_flag(Kind::PhysicalMem, IPC_MEM, "UR_PHYSICAL_MEM_FLAG_ENABLE_IPC", ResultCode::INVALID_ARGUMENT),
    ],
    flags: &[
        // Events with profiling cannot be exported.
        DefinedFlags {
            effect: Effect::Creates(Kind::Event),
            undefined: constants::UR_EXP_EVENT_FLAGS_MASK,
            exclusive: constants::UR_EXP_EVENT_FLAG_ENABLE_PROFILING | constants::UR_EXP_EVENT_FLAG_IPC_EXP,
        },
        // Bit 0 was a placeholder until 2026.1 and has been undefined since: it is accepted.
        defined(Effect::Creates(Kind::PhysicalMem), constants::UR_PHYSICAL_MEM_FLAGS_MASK & !1),
        defined(Effect::Creates(Kind::Context), constants::UR_CONTEXT_FLAGS_MASK),
        defined(Effect::Creates(Kind::Pool), constants::UR_USM_POOL_FLAGS_MASK),
        defined(Effect::Allocates(Kind::Usm), constants::UR_USM_ADVICE_FLAGS_MASK),
        defined(Effect::Maps(Kind::PhysicalMem), constants::UR_VIRTUAL_MEM_ACCESS_FLAGS_MASK),
    ],
    importing: None,
    usm_types: &[
        ("urUSMDeviceAlloc", UsmType::Device),
        ("urEnqueueUSMDeviceAllocExp", UsmType::Device),
        ("urUSMHostAlloc", UsmType::Host),
        ("urEnqueueUSMHostAllocExp", UsmType::Host),
        ("urUSMSharedAlloc", UsmType::Shared),
        ("urEnqueueUSMSharedAllocExp", UsmType::Shared),
    ],
    support: &[
        (constants::UR_DEVICE_INFO_IPC_MEMORY_SUPPORT_EXP, Kind::Usm),
        (constants::UR_DEVICE_INFO_IPC_PHYSICAL_MEMORY_SUPPORT_EXP, Kind::PhysicalMem),
        (constants::UR_DEVICE_INFO_IPC_EVENT_SUPPORT_EXP, Kind::Event),
    ],
    promises: Promises::new(&[]),
    words: WORDS,
};

/// The words of programs in SYCL.
pub(super) const WORDS: Words = Words {
    callee: "the adapter",
    memory: "USM allocation",
    shareable_memory: "memory of malloc_device",
    free: "urUSMFree",
    close: "urIPCCloseMemHandleExp",
    end_event: "release it with urEventRelease before its context is released; in SYCL, destroy the event object",
    end_physical_memory: "close it before its context is released; in SYCL, destroy the physical_mem object",
    left_open: "handles, mappings and shared objects",
    end_left_open: "put, close and release what leaked-handle and leaked-mapping report",
    or_shareable: "; in SYCL, with the property enable_ipc",
    changed_bytes: "open a copy of the bytes and send the original on, for the v1 adapter overwrites what it opens; or \
                    trace all processes, for urscope gives that adapter a copy",
    reason: "set UR_LOG_LEVEL_ZERO=level:debug;output:stderr to see the adapter's reason",
};

const fn defined(effect: Effect, undefined: u32) -> DefinedFlags {
    DefinedFlags { effect, undefined, exclusive: 0 }
}
