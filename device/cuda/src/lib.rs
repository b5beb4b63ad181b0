//! `libcuda.so.1`: a stand-in for the CUDA driver on the software device.
//!
//! It shares memory and events between processes as the driver does, so that programs which do so run without a GPU.
//! All of that is the software device's, whose objects are used here without the functions of Level Zero: memory,
//! events, streams. So no tool sees calls of Level Zero. What is added here is what CUDA promises otherwise: current
//! contexts, the default stream, opens that are counted, addresses that are used again, memory that lives as long as
//! its last reference.
//!
//! * [`arguments`] and [`result`]: the C boundary; [`exports`]: the list of functions that each module has.
//! * [`context`], [`memory`], [`stream`], [`event`], [`ipc`], [`physical`], [`pool`]: the objects and their functions.
//! * [`query`]: what programs ask of the driver and its devices; [`proc_address`]: how they find functions.
//!
//! It runs no kernels: what loads or launches one is refused, with a line on stderr. Must never print to stdout, and
//! never unwind into C.

mod arguments;
mod context;
mod event;
mod exports;
mod ipc;
mod memory;
mod objects;
mod physical;
mod pool;
mod proc_address;
mod query;
mod result;
mod rows;
mod stream;

/// What tools ask of the device (`ze_soft.h`).
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is that of a C symbol")]
pub static zeSoftInterface: urscope_device::interface::Interface = urscope_device::INTERFACE;
