//! Level Zero: `ze_api.h` and `ze_ddi.h` 1.17, and extensions of Intel's driver.
//!
//! The specification asks for less than that of SYCL. A put is optional, because a driver gives back what belongs to a
//! handle when its memory is freed, and a driver keeps memory as long as somebody has it open. Communication libraries
//! rely on both: they put nothing, free before others close, and keep mappings open until their process ends. Only
//! growth is a leak.

pub mod constants;
mod results;
pub mod roles;
pub mod structures;
#[macro_use]
pub mod rows;

use super::interface::{Calls, Interface, Library, Promise, Promises, ResultCode, Shareable, Words};
use crate::handle::Kind;

/// The interface.
pub static INTERFACE: Interface = Interface {
    name: "Level Zero",
    libraries: &[Library::opening_devices("libze_", Calls::Forwarded)],
    results: results::RESULTS,
    hex_results: true,
    shareable: &[
        shareable(Kind::EventPool, constants::EVENT_POOL_FLAG_IPC, "ZE_EVENT_POOL_FLAG_IPC"),
        shareable(Kind::Event, constants::EVENT_COUNTER_BASED_FLAG_IPC, "ZE_EVENT_COUNTER_BASED_FLAG_IPC"),
        Shareable {
            property: Some(constants::EXTERNAL_MEMORY_EXPORT_DESC),
            ..shareable(Kind::PhysicalMem, 0, "a ze_external_memory_export_desc_t")
        },
    ],
    flags: &[],
    importing: Some(constants::EXTERNAL_MEMORY_IMPORT_FD),
    usm_types: &[],
    support: &[],
    promises: Promises::new(&[
        Promise::PutIsOptional,
        // A driver returns the same descriptor for the same memory, or makes one at every get.
        Promise::GetsAreCounted,
        Promise::MemoryOutlivesFree,
        Promise::OpensMayStay,
        // Libraries map the descriptor of a handle by mmap(2), too, which no trace shows.
        Promise::HandlesAreDescriptors,
        // A driver exports memory of any of its contexts, and libraries get it in a context of their own.
        Promise::AnyMemoryIsShareable,
        Promise::PhysicalMemoryIsMemory,
    ]),
    words: Words {
        callee: "the driver",
        memory: "USM allocation",
        shareable_memory: "memory of zeMemAllocDevice",
        free: "zeMemFree",
        close: "zeMemCloseIpcHandle",
        end_event: "end it with zeEventDestroy",
        end_physical_memory: "end it with zePhysicalMemDestroy",
        left_open: "handles, mappings and shared objects",
        end_left_open: "put, close and release what leaked-handle and leaked-mapping report",
        or_shareable: "",
        changed_bytes: "pass the bytes on as they were got",
        reason: "ask zeDriverGetLastErrorDescription for the driver's reason",
    },
};

const fn shareable(kind: Kind, flag: u64, name: &'static str) -> Shareable {
    Shareable::by_flag(kind, flag, name, ResultCode::INVALID_ARGUMENT)
}
