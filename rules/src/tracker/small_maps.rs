//! Maps that take little memory for one or two large values.
//!
//! A tree has nodes for eleven values, and a hash table has room for four or eight. Most processes have one or two
//! values, so here the tree or the table holds only their places in a [`Slab`].

use std::collections::{BTreeMap, hash_map::Entry};
use std::{hash::Hash, ops::RangeBounds};

use slab::Slab;

use super::maps::Map;

/// Values by their first addresses, in rising order.
#[derive(Clone, Debug)]
pub(crate) struct ByAddress<T> {
    numbers: BTreeMap<u64, u32>,
    values: Slab<T>,
}

impl<T> Default for ByAddress<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), values: Slab::new() }
    }
}

impl<T> ByAddress<T> {
    pub(crate) fn get(&self, address: u64) -> Option<&T> {
        self.values.get(*self.numbers.get(&address)? as usize)
    }

    pub(super) fn get_mut(&mut self, address: u64) -> Option<&mut T> {
        self.values.get_mut(*self.numbers.get(&address)? as usize)
    }

    /// The value at an address, or at the next one below it.
    pub(super) fn at_or_below(&self, address: u64) -> Option<(u64, &T)> {
        // Nearly all calls name a first address, and a search for that is much faster.
        self.get(address).map(|value| (address, value)).or_else(|| self.range(..address).next_back())
    }

    /// The value at an address, made by `new` if there is none.
    pub(super) fn get_or_insert_with(&mut self, address: u64, new: impl FnOnce() -> T) -> &mut T {
        let Self { numbers, values } = self;
        let number = *numbers.entry(address).or_insert_with(|| insert(values, new()));
        &mut values[number as usize]
    }

    pub(super) fn insert(&mut self, address: u64, value: T) {
        match self.get_mut(address) {
            Some(old) => *old = value,
            None => {
                self.numbers.insert(address, insert(&mut self.values, value));
            }
        }
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<T> {
        self.values.try_remove(self.numbers.remove(&address)? as usize)
    }

    /// The values at the addresses of a range, in rising order.
    pub(crate) fn range(&self, range: impl RangeBounds<u64>) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.numbers.range(range).filter_map(|(address, number)| Some((*address, self.values.get(*number as usize)?)))
    }

    /// All values, in the order of their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.range(..)
    }

    /// All values, to be changed, in no order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}

/// Values by handles or numbers, in no order.
#[derive(Clone, Debug)]
pub(crate) struct SmallMap<K, T> {
    numbers: Map<K, u32>,
    values: Slab<T>,
}

impl<K, T> Default for SmallMap<K, T> {
    fn default() -> Self {
        Self { numbers: Map::default(), values: Slab::new() }
    }
}

impl<K: Eq + Hash, T> SmallMap<K, T> {
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.values.get(*self.numbers.get(key)? as usize)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        self.values.get_mut(*self.numbers.get(key)? as usize)
    }

    pub(super) fn insert(&mut self, key: K, value: T) {
        let Self { numbers, values } = self;
        match numbers.entry(key) {
            Entry::Occupied(known) => values[*known.get() as usize] = value,
            Entry::Vacant(new) => _ = new.insert(insert(values, value)),
        }
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<T> {
        self.values.try_remove(self.numbers.remove(key)? as usize)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Self { numbers, values } = self;
        values.retain(|_, value| keep(value));
        numbers.retain(|_, number| values.contains(*number as usize));
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.numbers.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.numbers.iter().filter_map(|(key, number)| Some((key, self.values.get(*number as usize)?)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}

/// Stores a value. The first four get exactly the room that they need, where a vector would take all of it at once.
fn insert<T>(values: &mut Slab<T>, value: T) -> u32 {
    if values.len() == values.capacity() && values.len() < 4 {
        values.reserve_exact(1);
    }
    values.insert(value) as u32
}
