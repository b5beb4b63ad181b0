//! The driver, its devices and contexts, and the properties that they report.
//!
//! Must never depend on what is created in a context: memory, events and commands.

pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod fabric;
pub(crate) mod properties;

mod selection;
