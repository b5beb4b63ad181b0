//! Hash tables of what this process itself makes: handles and addresses. The standard library's default hash has a
//! variable in each thread for its seeds; this one has none.

use std::hash::{BuildHasherDefault, DefaultHasher};

/// A table of the standard library, with a hash that is the same in every process.
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;
