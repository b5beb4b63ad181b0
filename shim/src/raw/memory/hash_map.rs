//! Hash tables of handles and addresses. The standard library's default hash has a thread-local variable for its
//! seeds; this one has none.

use std::hash::{BuildHasherDefault, DefaultHasher};

/// The standard library's table, with a hash without seeds.
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;
