//! The entry points: the ways in which calls reach urscope.
//!
//! [`dlsym`] notices when a loader asks an adapter for its tables, [`ddi`] replaces functions in them (`command` has
//! those for commands), and [`exports`] serves programs that call our exported functions. [`level_zero`] does the
//! same for the drivers of Level Zero. `inline`, of the cargo feature `frida-gum`, changes the code of adapters that
//! none of these reaches, and [`xpti`] observes their calls. [`exec`] notices when the process becomes another
//! program. [`untraced_adapters`] finds at the end which adapters were reached without them.
//!
//! An entry point must reject what it does not recognise, report that, and leave the program alone.

mod command;
pub mod ddi;
pub mod dlsym;
pub mod exec;
pub mod exports;
#[cfg(feature = "frida-gum")]
pub mod inline;
mod level_zero;
pub mod untraced_adapters;
pub mod xpti;
