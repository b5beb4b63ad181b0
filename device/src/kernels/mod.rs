//! Modules and kernels.
//!
//! `engine` is the OpenCL library that compiles and runs them; `spirv` reads what the library does not
//! report. `input` is what a module is made from, `build` makes a program of it, and `module` and
//! `kernel` have the objects and their entry points. `launch` is one execution of a kernel with its
//! arguments. Must never load the engine before a module is created.

#[expect(unsafe_code, reason = "calls an OpenCL library and handles signals")]
mod engine;

pub(crate) use engine::faults;

mod build;
pub(crate) mod build_log;
pub(crate) mod input;
pub(crate) mod kernel;
#[expect(unsafe_code, reason = "reads arguments of kernels, whose sizes the kernel says")]
pub(crate) mod launch;
pub(crate) mod module;
mod spirv;
