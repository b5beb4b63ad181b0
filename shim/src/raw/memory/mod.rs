//! Memory: the allocator with a reserve, and maps that do not need much of it.

pub mod hash_map;
pub mod reserve;
