//! The CUDA driver: `cuda.h` 13.0.
//!
//! Nothing returns a handle: gets of an allocation give equal bytes until it is freed. Unlike Level Zero, the
//! documentation leaves undefined what happens when memory is freed, or an event destroyed, while another process has
//! it open. The driver closes at the end of a process what that has left open, and libraries rely on it: only growth is
//! a leak.

pub mod constants;
mod results;
pub mod roles;
pub mod structures;
#[macro_use]
pub mod rows;

use super::interface::{Calls, Interface, Library, Promise, Promises, ResultCode, Shareable, Words};
use crate::handle::{Kind, UsmType};

/// All types of handles that memory may be made for.
const HANDLE_TYPES: u64 = 0xf;

/// The interface.
pub static INTERFACE: Interface = Interface {
    name: "CUDA",
    libraries: &[Library::opening_devices("libcuda.so", Calls::Own)],
    results: results::RESULTS,
    hex_results: false,
    shareable: &[
        Shareable::by_flag(
            Kind::Event,
            constants::EVENT_INTERPROCESS,
            "CU_EVENT_INTERPROCESS",
            ResultCode::INVALID_EVENT,
        ),
        Shareable::by_flag(Kind::PhysicalMem, HANDLE_TYPES, "requestedHandleTypes", ResultCode::INVALID_VALUE),
    ],
    flags: &[],
    importing: Some(roles::IMPORTS),
    usm_types: &[
        ("cuMemAlloc_v2", UsmType::Device),
        ("cuMemAllocPitch_v2", UsmType::Device),
        ("cuMemAllocManaged", UsmType::Shared),
        ("cuMemAllocAsync", UsmType::Pool),
        ("cuMemAllocFromPoolAsync", UsmType::Pool),
        ("cuMemPoolExportPointer", UsmType::Pool),
        ("cuMemPoolImportPointer", UsmType::Pool),
    ],
    support: &[],
    promises: Promises::new(&[
        Promise::PutIsOptional,
        Promise::GetsAreCounted,
        Promise::OpensMayStay,
        Promise::ContextsOwnMemory,
        // The driver waits for the device (measured: driver 580, H200).
        Promise::EndsWait,
        // "After this API returns, accessing the memory from any subsequent work launched on the GPU ... results in
        // undefined behavior" (cuMemFreeAsync, cuda.h).
        Promise::FreesEndAtOnce,
        Promise::HandlesNameAllocations,
        Promise::ContextsHaveQueues,
        Promise::HostCopiesWait,
        Promise::MappingsHoldMemory,
        // "the memory allocation will be freed when all outstanding mappings to the memory are unmapped and when all
        // outstanding references to the handle (including it's shareable counterparts) are also released"
        // (cuMemRelease, cuda.h).
        Promise::DescriptorsKeepMemory,
        Promise::OwnOpensAreRefused,
    ]),
    words: Words {
        callee: "the driver",
        memory: "memory",
        shareable_memory: "memory of cuMemAlloc",
        free: "cuMemFree",
        close: "cuIpcCloseMemHandle",
        end_event: "end it with cuEventDestroy",
        end_physical_memory: "end it with cuMemRelease",
        left_open: "mappings and shared objects",
        end_left_open: "close, unmap and release what leaked-mapping and leaked-physical-memory report",
        or_shareable: "",
        changed_bytes: "pass the bytes on as they were got",
        reason: "set CUDA_LOG_FILE=stderr to see the driver's reason",
    },
};
