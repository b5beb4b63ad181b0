//! The entry points, by which calls reach urscope.
//!
//! [`dlsym`] sees when a loader asks an adapter for its tables, [`ddi`] replaces functions in them by those in `hooks`,
//! and [`exports`] has the exported functions. [`level_zero`] hooks the drivers of Level Zero, [`cuda`] that of CUDA. For adapters that these
//! do not reach, `inline`, of the cargo feature `frida-gum`, changes the code, and [`xpti`] observes the calls.
//! [`exec`] records `exec` calls. [`untraced_adapters`] reports at the end which adapters no entry point reached.
//!
//! An entry point must reject what it does not recognize, report that, and not change the program.

pub mod cuda;
pub mod ddi;
pub mod dlsym;
mod driver;
pub mod exec;
pub mod exports;
mod hooks;
#[cfg(feature = "frida-gum")]
pub mod inline;
mod level_zero;
pub mod real_dlsym;
pub mod untraced_adapters;
pub mod xpti;
