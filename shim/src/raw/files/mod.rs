//! Files, also in places where other users may write.

pub mod kept_descriptors;
pub mod named_file;
pub mod open_file;
pub mod plain_file;
