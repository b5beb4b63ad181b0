//! Memory: the allocator with a reserve, maps that do not need much of it, and what is at an address.

pub(crate) mod checked;
pub mod hash_map;
pub mod host_memory;
pub mod reserve;
