//! A Level Zero device in software.
//!
//! Host memory behind the Level Zero API: enough for the real libsycl, both Level Zero adapters of the Unified Runtime
//! and libumf, unmodified. Memory lies in shared-memory files, so that it can be opened in other processes; command
//! lists run on worker threads, so that work is asynchronous as on a device.
//!
//! A tour, from the C boundary inwards:
//!
//! * [`ze_functions!`] in `table` is the list of all functions; [`ddi`] makes entry points and tables of it; the leaf
//!   crate `urscope-device-loader` makes exported symbols of it.
//! * `ffi` is the boundary: codes, pointers, handles and structures.
//! * `discovery` answers who is there.
//! * `memory` allocates and shares, on top of `shared_memory`.
//! * `commands` and `events` are the command entry points, and what is behind them.
//! * `platform` is what comes from the host.
//!
//! Deliberately absent: kernels, images, system management. Must never print to stdout, and never unwind into C.

pub mod ddi;

mod commands;
mod discovery;
mod events;
mod ffi;
mod memory;
mod platform;
mod shared_memory;
mod table;

pub use ffi::handles::Handle;
pub use ffi::layout;
pub use ffi::result::ZeResult;
pub use platform::settings;
