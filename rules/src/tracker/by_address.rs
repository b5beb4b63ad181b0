//! A map by address that finds the entry at or below an address.

use std::{collections::BTreeMap, ops::RangeBounds};

use slab::Slab;

/// Values by their first addresses.
///
/// The nodes of a [`BTreeMap`] have room for eleven values. Most processes have fewer, and values are large, so the
/// tree holds their numbers.
#[derive(Clone, Debug)]
pub(crate) struct ByAddress<T> {
    numbers: BTreeMap<u64, usize>,
    values: Slab<T>,
}

impl<T> Default for ByAddress<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), values: Slab::new() }
    }
}

impl<T> ByAddress<T> {
    pub(crate) fn get(&self, address: u64) -> Option<&T> {
        self.values.get(*self.numbers.get(&address)?)
    }

    pub(super) fn get_mut(&mut self, address: u64) -> Option<&mut T> {
        self.values.get_mut(*self.numbers.get(&address)?)
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
        #[expect(clippy::indexing_slicing, reason = "a number lies in `numbers` as long as its value is there")]
        &mut values[number]
    }

    pub(super) fn insert(&mut self, address: u64, value: T) {
        match self.numbers.get(&address).and_then(|number| self.values.get_mut(*number)) {
            Some(old) => *old = value,
            None => {
                self.numbers.insert(address, insert(&mut self.values, value));
            }
        }
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<T> {
        self.values.try_remove(self.numbers.remove(&address)?)
    }

    /// The values at the addresses of a range, in rising order.
    pub(crate) fn range(&self, range: impl RangeBounds<u64>) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.numbers.range(range).filter_map(|(address, number)| Some((*address, self.values.get(*number)?)))
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

/// Stores a value. Most processes have one, and a vector would take room for four.
fn insert<T>(values: &mut Slab<T>, value: T) -> usize {
    if values.is_empty() {
        values.reserve_exact(1);
    }
    values.insert(value)
}
