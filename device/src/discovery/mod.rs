//! The driver, its devices and contexts, and what they report about themselves.

pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod module;
pub(crate) mod properties;
