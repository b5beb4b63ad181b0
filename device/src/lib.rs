//! A Level Zero device in software.
//!
//! Host memory behind the Level Zero API, enough for libsycl, both Level Zero adapters of the Unified Runtime and
//! libumf, unmodified. Memory lies in shared-memory files, so that other processes can open it; command lists run on
//! threads, so that work is asynchronous as on a GPU.
//!
//! The objects of the device have methods in Rust. Entry points put C signatures around them; `urscope-device-cuda`,
//! another interface on the same device, calls them as they are.
//!
//! [`ze_functions!`] in `table` lists all functions. [`ddi`] makes entry points and tables of it, and the crate
//! `urscope-device-loader` makes exported symbols of it.
//!
//! # Layers
//!
//! A module uses the modules of its own layer and of those above it in this list, never one below. The test
//! `tests/tests/end_to_end/module_dependencies.rs` reads the list and compares.
//!
//! 1. `platform`: the host system: clock, processes, descriptors, memory budgets, environment variables, stderr.
//! 2. `ffi`: the C boundary: arguments, handles, result codes, and the structures of ze_api.h.
//! 3. `shared_memory`: files of shared memory, ranges in them, and the data of IPC handles.
//! 4. `discovery`: the driver, its devices and contexts, and their properties.
//! 5. `memory`: allocations, physical memory, virtual memory, and memory IPC.
//! 6. `events`: events, event pools, and event IPC.
//! 7. `kernels`: modules and kernels, and the engine that compiles and runs them.
//! 8. `commands`: command lists, queues, fences, and the threads that execute commands.
//! 9. `ddi`: the exported functions and tables.
//!
//! Deliberately absent: images, system management. Must never print to stdout, and never unwind into C. Unsafe
//! code is denied except in the modules whose declaration says why they need it.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "entry points are naked functions, and DDI tables are written through pointers")]
pub mod ddi;

mod commands;
mod discovery;
mod events;
mod ffi;
mod kernels;
mod memory;
mod platform;
mod shared_memory;
mod table;

pub use commands::engine::{Priority, Queue};
pub use commands::observer::INTERFACE;
pub use commands::stream::Stream;
pub use commands::work::{Region, Work};
pub use discovery::{device::Device, driver::devices};
pub use events::event::Event;
pub use ffi::arguments::{Address, Argument, HostFunction, UserData};
pub use ffi::{handles::Handle, layout, result::ZeResult};
pub use kernels::input::native_binary_of;
pub use memory::{Allocation, Kind, Reservation, physical::PhysicalMemory};
pub use platform::deadline::Deadline;
pub use platform::log::{note, take_reason};
pub use platform::process::allow_descriptor_fetch;
pub use platform::settings;
pub use shared_memory::handle_data::{named, producer};
pub use shared_memory::mapping::Access;
pub use shared_memory::own_file::exported_size;
pub use urscope_device_interface as interface;
