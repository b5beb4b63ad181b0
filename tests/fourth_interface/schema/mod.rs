//! HIP: `hip_runtime_api.h` 7.0. It is not one of urscope's interfaces: what its objects promise is tried on no GPU of
//! AMD's.

mod results;
pub mod roles;
#[macro_use]
pub mod rows;

use super::interface::{Calls, Interface, Library, Promise, Promises, ResultCode, Shareable, Words};
use crate::handle::Kind;

/// `hipEventInterprocess`.
const EVENT_INTERPROCESS: u64 = 4;

/// The interface.
pub static INTERFACE: Interface = Interface {
    name: "HIP",
    libraries: &[Library::opening_devices("libamdhip64.", Calls::Own)],
    results: results::RESULTS,
    hex_results: false,
    shareable: &[Shareable::by_flag(
        Kind::Event,
        EVENT_INTERPROCESS,
        "hipEventInterprocess",
        ResultCode::INVALID_EVENT,
    )],
    flags: &[],
    importing: None,
    usm_types: &[],
    support: &[],
    // No function returns a handle.
    promises: Promises::new(&[Promise::PutIsOptional]),
    words: Words {
        callee: "the runtime",
        memory: "memory",
        shareable_memory: "memory of hipMalloc",
        free: "hipFree",
        close: "hipIpcCloseMemHandle",
        end_event: "end it with hipEventDestroy",
        end_physical_memory: "",
        left_open: "mappings and shared objects",
        end_left_open: "close what leaked-mapping reports",
        or_shareable: "",
        changed_bytes: "pass the bytes on as they were got",
        reason: "set AMD_LOG_LEVEL=3 to see the runtime's reason",
    },
};
