//! Shared-memory files, and how another process gets at what lies in them.

pub(crate) mod exports;
pub(crate) mod mapping;
pub(crate) mod sealed;
pub(crate) mod segment;
pub(crate) mod source;

/// The page size of the device, in bytes: the granularity of all memory.
pub(crate) const PAGE: usize = 4096;
