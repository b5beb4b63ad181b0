//! Maps whose values stay where they are: found by their keys with one probe of a flat table, or by their slots without any.

use urscope_schema::handle::Handle;

use super::hash::Slots;

/// Where a value lies in its table, as long as it is there.
pub(crate) type Slot = u32;

/// Up to so many values are found by looking at all of them: most processes have few, and need no table of hashes.
pub(crate) const FEW: usize = 4;

/// What values are found by: a number or a handle.
pub(crate) trait Key: Copy + Eq {
    /// The words that are hashed.
    fn words(self) -> (u64, u64);
}

impl Key for u64 {
    #[inline]
    fn words(self) -> (u64, u64) {
        (self, 0)
    }
}

impl Key for Handle {
    #[inline]
    fn words(self) -> (u64, u64) {
        (self.value, self.kind as u64)
    }
}

/// Values by their keys. Without values it has no memory, and it grows by doubling from room for `FIRST` values on: memory that was too
/// small leaves a gap that no larger table of another process fits in.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V, const FIRST: usize = 1> {
    entries: Vec<Entry<K, V>>,
    /// The slot that was emptied last, which is the first of a list; [`NONE`] if there is none.
    free: Slot,
    len: u32,
    /// The slots by their keys, once there have been more than [`FEW`] at a time. A process has many tables, most of them small.
    index: Option<Box<Slots>>,
}

#[derive(Clone, Debug)]
enum Entry<K, V> {
    /// Nothing; the next one in the list of empty slots.
    Empty(Slot),
    Full(K, V),
}

/// No slot.
const NONE: Slot = Slot::MAX;

impl<K, V, const FIRST: usize> Default for Table<K, V, FIRST> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, const FIRST: usize> Table<K, V, FIRST> {
    /// Without values.
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), free: NONE, len: 0, index: None }
    }
}

impl<K: Key, V, const FIRST: usize> Table<K, V, FIRST> {
    /// Whether the keys are found by looking at all values.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        self.entries.len() <= FEW
    }

    /// How many values there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Where the value of a key lies.
    #[inline]
    pub(crate) fn find(&self, key: K) -> Option<Slot> {
        let is_it = |entry: &Entry<K, V>| matches!(entry, Entry::Full(found, _) if *found == key);
        if self.is_small() {
            return self.entries.iter().position(is_it).map(|slot| slot as Slot);
        }
        self.index.as_deref()?.find(key.words(), |slot| self.entries.get(slot as usize).is_some_and(is_it))
    }

    /// The value in a slot, with its key.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> Option<(K, &V)> {
        match self.entries.get(slot as usize)? {
            Entry::Full(key, value) => Some((*key, value)),
            Entry::Empty(_) => None,
        }
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> Option<&mut V> {
        match self.entries.get_mut(slot as usize)? {
            Entry::Full(_, value) => Some(value),
            Entry::Empty(_) => None,
        }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.at(self.find(key)?).map(|(_, value)| value)
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.at_mut(self.find(key)?)
    }

    /// Whether a key has a value.
    #[inline]
    pub(crate) fn contains(&self, key: K) -> bool {
        self.find(key).is_some()
    }

    /// Gives a key a value, in place of the one that it had.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.find(key) {
            Some(slot) => {
                if let Some(known) = self.at_mut(slot) {
                    *known = value;
                }
            }
            None => {
                self.add(key, value);
            }
        }
    }

    /// Adds a value for a key that has none.
    pub(crate) fn add(&mut self, key: K, value: V) -> Slot {
        self.add_in_place(key, || value)
    }

    /// The same for a value that is made where it stays, if a slot is empty: a large value is not copied then.
    #[expect(clippy::inline_always, reason = "so that the value is stored field by field")]
    #[inline(always)]
    pub(crate) fn add_in_place(&mut self, key: K, value: impl FnOnce() -> V) -> Slot {
        let slot = self.free;
        let Some(place) = self.entries.get_mut(slot as usize) else { return self.push(key, value()) };
        if let Entry::Empty(next) = place {
            self.free = *next;
        }
        *place = Entry::Full(key, value());
        self.len += 1;
        if let Some(index) = &mut self.index {
            index.insert(key.words(), slot);
        }
        slot
    }

    /// Adds a value behind all slots, none of which is empty.
    #[inline(never)]
    fn push(&mut self, key: K, value: V) -> Slot {
        let new = Entry::Full(key, value);
        self.len += 1;
        let slot = self.entries.len() as Slot;
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len().max(FIRST));
        }
        self.entries.push(new);
        if let Some(index) = &mut self.index {
            index.insert(key.words(), slot);
        } else if !self.is_small() {
            self.index_all();
        }
        slot
    }

    /// From here on there is a table of hashes. No slot is empty now.
    #[cold]
    fn index_all(&mut self) {
        let index = self.index.insert(Box::default());
        for (slot, entry) in (0..).zip(&self.entries) {
            if let Entry::Full(key, _) = entry {
                index.insert(key.words(), slot);
            }
        }
    }

    /// Empties a slot.
    #[inline]
    pub(crate) fn clear(&mut self, slot: Slot) {
        let Some(place) = self.entries.get_mut(slot as usize) else { return };
        let Entry::Full(key, _) = place else { return };
        if let Some(index) = &mut self.index {
            index.remove(key.words(), slot);
        }
        *place = Entry::Empty(self.free);
        self.free = slot;
        self.len -= 1;
    }

    /// Takes the value of a key out.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let slot = self.find(key)?;
        if let Some(index) = &mut self.index {
            index.remove(key.words(), slot);
        }
        let taken = std::mem::replace(self.entries.get_mut(slot as usize)?, Entry::Empty(self.free));
        self.free = slot;
        self.len -= 1;
        match taken {
            Entry::Full(_, value) => Some(value),
            Entry::Empty(_) => None,
        }
    }

    /// Frees the memory of a small table without values, unless values that are added would then get other slots.
    pub(crate) fn give_back(&mut self) {
        let is_as_new = |(slot, entry): (Slot, &Entry<K, V>)| match entry {
            Entry::Empty(next) => *next == slot + 1 || *next == NONE && slot as usize + 1 == self.entries.len(),
            Entry::Full(..) => false,
        };
        let is_idle = self.len == 0 && self.free == 0 && self.is_small();
        if is_idle && (0..).zip(&self.entries).all(is_as_new) {
            *self = Self::new();
        }
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Full(key, value) => Some((*key, value)),
            Entry::Empty(_) => None,
        })
    }

    /// All of them, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Full(key, value) => Some((*key, value)),
            Entry::Empty(_) => None,
        })
    }

    /// All keys, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in no order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn values_are_found_as_in_a_map_and_stay_in_their_slots() {
        // Keys and steps by a fixed sequence of numbers; the number of keys grows.
        let (mut table, mut map, mut slots) = (<Table<_, _>>::default(), HashMap::new(), HashMap::new());
        let mut random = 1_u64;
        for step in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (random >> 33) % (step / 50 + 2);
            let what = (random >> 20) % 4;
            if what == 0 {
                assert_eq!(table.remove(key), map.remove(&key));
                slots.remove(&key);
            } else if what == 1 {
                table.find(key).into_iter().for_each(|slot| table.clear(slot));
                map.remove(&key);
                slots.remove(&key);
            } else {
                table.insert(key, step);
                map.insert(key, step);
                let slot = table.find(key).unwrap();
                assert_eq!(*slots.entry(key).or_insert(slot), slot);
            }
            assert_eq!((table.get(key), table.contains(key)), (map.get(&key), map.contains_key(&key)));
            assert_eq!(table.len(), map.len());
        }
        assert!(map.len() > 100 && !table.is_small());
        for (key, slot) in slots {
            assert_eq!(table.at(slot), map.get(&key).map(|value| (key, value)));
        }
        let mut found: Vec<_> = table.iter().map(|(key, value)| (key, *value)).collect();
        let mut expected: Vec<_> = map.into_iter().collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_table_has_room_for_what_is_there() {
        let mut table = <Table<_, _>>::default();
        assert_eq!(table.entries.capacity(), 0);
        for (key, room) in (0..4_u64).zip([1, 2, 4, 4]) {
            table.insert(key, key);
            assert_eq!((table.entries.capacity(), table.is_small()), (room, true));
        }
        (0..4).for_each(|key| assert_eq!(table.remove(key), Some(key)));
        table.insert(9, 9);
        assert_eq!((table.entries.capacity(), table.get(9), table.len()), (4, Some(&9), 1));
    }

    #[test]
    fn a_table_gives_its_memory_back_where_that_changes_no_slot() {
        let filled = || {
            let mut table = <Table<_, _>>::default();
            (0..3_u64).for_each(|key| table.insert(key, key));
            table
        };
        let mut table = filled();
        (0..3).for_each(|key| assert_eq!(table.remove(key), Some(key)));
        table.give_back();
        assert_eq!(table.entries.capacity(), 4, "the last slot would be the next one");
        let mut table = filled();
        (1..3).rev().for_each(|key| assert_eq!(table.remove(key), Some(key)));
        table.give_back();
        assert_eq!((table.entries.capacity(), table.get(0)), (4, Some(&0)));
        table.remove(0);
        table.give_back();
        assert_eq!((table.entries.capacity(), table.free, table.len()), (0, NONE, 0));
        assert_eq!((table.add(7, 7), table.get(7)), (0, Some(&7)));
    }
}
