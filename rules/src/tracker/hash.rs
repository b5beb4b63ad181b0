//! How the tracker finds an address: maps with a hash made for single words.
//!
//! A live process pays for every lookup, and the standard library's hash is made for long keys. The seed is random, so
//! that no trace can be written whose addresses all meet in one bucket.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, Hasher, RandomState},
};

/// A map by addresses, handles or numbers.
pub(crate) type Map<K, V> = HashMap<K, V, Seed>;

/// A set of them.
pub(crate) type Set<K> = HashSet<K, Seed>;

/// Makes the hashes of one map.
#[derive(Clone, Debug)]
pub(crate) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

/// One hash: each word is folded in by a multiplication of 128 bits whose halves are xored.
#[derive(Debug)]
pub(crate) struct Fold(u64);

impl Hasher for Fold {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = ((product as u64) ^ ((product >> 64) as u64)).rotate_left(29);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
