//! Maps by addresses, handles and numbers.

use std::collections::{HashMap, HashSet};

/// A map by addresses, handles or numbers. Its seed is random, so that no trace can be written whose
/// addresses all collide.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A set of addresses, handles or numbers.
pub(crate) type Set<K> = HashSet<K, foldhash::fast::RandomState>;
