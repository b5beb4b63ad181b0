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
//! * `result`, `ffi`, `registry` and `layout` are the boundary: codes, pointers, handles and structures.
//! * `driver`, `device`, `properties` and `context` answer who is there.
//! * `memory` allocates and shares.
//! * `list`, `append`, `queue`, `event`, `pool` and `fence` are the command entry points, `event_ipc` those that share
//!   events; `work`, `stream` and `signal` are what is behind them.
//!
//! Deliberately absent: kernels, images, system management. Must never print to stdout, and never unwind into C.

mod append;
mod budget;
mod clock;
mod context;
pub mod ddi;
mod device;
mod driver;
mod event;
mod event_ipc;
mod fence;
mod ffi;
pub mod layout;
mod list;
mod loader;
mod log;
mod memory;
mod module;
mod pool;
mod process;
mod properties;
mod queue;
mod registry;
mod result;
pub mod settings;
mod signal;
mod stream;
mod table;
mod work;

pub use registry::Handle;
pub use result::ZeResult;
