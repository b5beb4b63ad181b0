//! Maps by addresses, handles and numbers.
//!
//! A live process pays for every lookup, and the standard library's hash is made for long keys.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::BuildHasher as _,
};

/// A map by addresses, handles or numbers. Its seed is random, so that no trace can be written whose addresses all collide.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A set of them.
pub(crate) type Set<K> = HashSet<K, foldhash::fast::RandomState>;

/// Finds the slots of a slab by their keys: a flat table with open addresses, in which the keys themselves are not kept. Its seed is
/// random, too.
#[derive(Clone, Default)]
pub(crate) struct Slots {
    /// A part of the hash and the slot, which is [`EMPTY`] where there is none. Empty, or a power of two that is at least twice `used`.
    places: Vec<(u32, u32)>,
    used: usize,
    seed: foldhash::fast::RandomState,
}

/// No slot.
const EMPTY: u32 = u32::MAX;

/// Where the slots lie depends on the seed.
impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("used", &self.used).finish_non_exhaustive()
    }
}

impl Slots {
    fn hash(&self, key: (u64, u64)) -> u32 {
        let hash = self.seed.hash_one(key);
        (hash ^ hash >> 32) as u32
    }

    /// The slot for a key, which must be one for which `is_of_key` is true.
    #[inline]
    pub(crate) fn find(&self, key: (u64, u64), is_of_key: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.place(self.hash(key), is_of_key)?;
        self.places.get(place).map(|(_, slot)| *slot)
    }

    /// Adds a slot for a key that has none.
    pub(crate) fn insert(&mut self, key: (u64, u64), slot: u32) {
        if 2 * (self.used + 1) > self.places.len() {
            let size = (2 * self.places.len()).max(16);
            let before = std::mem::replace(&mut self.places, vec![(0, EMPTY); size]);
            before.into_iter().filter(|(_, slot)| *slot != EMPTY).for_each(|place| self.put(place));
        }
        self.used += 1;
        self.put((self.hash(key), slot));
    }

    /// Gives a key another slot.
    pub(crate) fn replace(&mut self, key: (u64, u64), before: u32, now: u32) {
        let hash = self.hash(key);
        if let Some(place) = self.place(hash, |slot| slot == before)
            && let Some(place) = self.places.get_mut(place)
        {
            *place = (hash, now);
        }
    }

    /// Removes the slot of a key.
    pub(crate) fn remove(&mut self, key: (u64, u64), slot: u32) {
        let Some(mut hole) = self.place(self.hash(key), |found| found == slot) else { return };
        self.used -= 1;
        // Moves those back that were put behind it because it was there.
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some((hash, slot)) = self.places.get(at).copied().filter(|(_, slot)| *slot != EMPTY) else { break };
            let distance = |from: usize| at.wrapping_sub(from) & mask;
            if distance(hash as usize) >= distance(hole) {
                if let Some(place) = self.places.get_mut(hole) {
                    *place = (hash, slot);
                }
                hole = at;
            }
        }
        if let Some(place) = self.places.get_mut(hole) {
            *place = (0, EMPTY);
        }
    }

    fn put(&mut self, new: (u32, u32)) {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = new.0 as usize & mask;
        while let Some(place) = self.places.get_mut(at) {
            if place.1 == EMPTY {
                *place = new;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn place(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let (found, slot) = *self.places.get(at)?;
            if slot == EMPTY {
                return None;
            }
            if found == hash && is_it(slot) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn slots_are_found_as_in_a_map() {
        // Keys and steps by a fixed sequence of numbers.
        let (mut slots, mut map, mut keys) = (Slots::default(), HashMap::new(), vec![(0, 0); 5000]);
        let mut random = 1_u64;
        for slot in 0..keys.len() as u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (random >> 62, random >> 33 & 0x3ff);
            keys[slot as usize] = key;
            match map.get(&key).copied() {
                Some(before) if random & 1 << 20 == 0 => {
                    slots.replace(key, before, slot);
                    map.insert(key, slot);
                }
                Some(before) => {
                    slots.remove(key, before);
                    map.remove(&key);
                }
                None => {
                    slots.insert(key, slot);
                    map.insert(key, slot);
                }
            }
            if slot % 64 == 0 {
                for key in &keys {
                    assert_eq!(slots.find(*key, |slot| keys[slot as usize] == *key), map.get(key).copied());
                }
            }
        }
        assert!(slots.used == map.len() && map.len() > 100);
    }
}
