//! Shared-memory files: where all memory of the device lies, and how another process opens it.
//!
//! `segment` hands out ranges of files, `own_file` is a file with one range, `record` is the word in a
//! file that lets other processes open a range, `exports` counts the handles that were returned for
//! one, `handle_data` is the 64 bytes of a handle, and `import` opens one. `mapping` is the address
//! space that shows a file, `memory_file` the file itself. Must never know what a range is used for.

pub(crate) mod exports;
pub(crate) mod handle_data;
pub(crate) mod import;
#[expect(unsafe_code, reason = "mmap, and references into mapped pages")]
pub(crate) mod mapping;
#[expect(unsafe_code, reason = "memfd_create, seals and fallocate")]
pub(crate) mod memory_file;
pub(crate) mod own_file;
pub(crate) mod record;
pub(crate) mod segment;

/// The page size of the device, in bytes: the granularity of all memory.
pub(crate) const PAGE: usize = 4096;
