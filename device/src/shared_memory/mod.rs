//! Shared-memory files, and how another process gets at what lies in them.

pub(crate) mod exports;
pub(crate) mod handle_data;
pub(crate) mod mapping;
pub(crate) mod segment;
pub(crate) mod segment_file;

/// The page size of the device, in bytes: the granularity of all memory.
pub(crate) const PAGE: usize = 4096;
