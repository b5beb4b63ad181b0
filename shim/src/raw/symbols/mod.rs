//! Loaded libraries, and the names of functions in them. For findings and for entry points; must never be used on the
//! way of a call.

pub mod copies;
pub mod demangle;
pub mod elf;
mod find_object;
pub mod modules;
pub mod namespaces;
pub mod real_dlsym;
