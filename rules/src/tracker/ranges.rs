//! Memory by address: found by its start with one probe of a table, by an address inside it with one search.

use std::{collections::BTreeSet, ops::Range};

use smallvec::SmallVec;

use super::table::{FEW, Slot, Table};

/// Values by the address at which their memory starts.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<T, const FIRST: usize = 1> {
    by_start: Table<u64, T, FIRST>,
    /// All starts, once `by_start` is not small.
    #[expect(clippy::box_collection, reason = "most have none, and an empty set takes three words")]
    starts: Option<Box<BTreeSet<u64>>>,
}

impl<T, const FIRST: usize> Default for Ranges<T, FIRST> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const FIRST: usize> Ranges<T, FIRST> {
    /// Without values.
    pub(crate) const fn new() -> Self {
        Self { by_start: Table::new(), starts: None }
    }

    /// What starts at an address.
    #[inline]
    pub(crate) fn get(&self, start: u64) -> Option<&T> {
        self.by_start.get(start)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, start: u64) -> Option<&mut T> {
        self.by_start.get_mut(start)
    }

    /// Where the value lies that starts at an address.
    #[inline]
    pub(crate) fn find(&self, start: u64) -> Option<Slot> {
        self.by_start.find(start)
    }

    /// What lies in a slot, with its start.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> Option<(u64, &T)> {
        self.by_start.at(slot)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.by_start.at_mut(slot)
    }

    pub(crate) fn insert(&mut self, start: u64, value: T) {
        match self.by_start.get_mut(start) {
            Some(known) => *known = value,
            None => {
                self.add(start, value);
            }
        }
    }

    /// What starts at an address, made by `new` if nothing does.
    pub(crate) fn get_or_insert_with(&mut self, start: u64, new: impl FnOnce() -> T) -> Option<&mut T> {
        let slot = self.by_start.find(start).unwrap_or_else(|| self.add(start, new()));
        self.by_start.at_mut(slot)
    }

    /// Adds a value where none starts.
    pub(crate) fn add(&mut self, start: u64, value: T) -> Slot {
        let slot = self.by_start.add(start, value);
        if let Some(starts) = &mut self.starts {
            starts.insert(start);
        } else if !self.by_start.is_small() {
            self.starts = Some(Box::new(self.by_start.keys().collect()));
        }
        slot
    }

    /// Empties a slot.
    pub(crate) fn clear(&mut self, slot: Slot) {
        if let Some(starts) = &mut self.starts
            && let Some((start, _)) = self.by_start.at(slot)
        {
            starts.remove(&start);
        }
        self.by_start.clear(slot);
    }

    pub(crate) fn remove(&mut self, start: u64) -> Option<T> {
        let removed = self.by_start.remove(start);
        if let Some(starts) = self.starts.as_mut().filter(|_| removed.is_some()) {
            starts.remove(&start);
        }
        removed
    }

    /// Frees the memory of a [table](Table::give_back) without values.
    pub(crate) fn give_back(&mut self) {
        if self.starts.is_none() {
            self.by_start.give_back();
        }
    }

    /// Where the value lies that starts last at an address or before it.
    #[inline]
    pub(crate) fn find_at_or_before(&self, address: u64) -> Option<Slot> {
        self.by_start.find(address).or_else(|| self.find_before(address))
    }

    /// What starts last at an address or before it.
    pub(crate) fn at_or_before(&self, address: u64) -> Option<(u64, &T)> {
        self.at(self.find_at_or_before(address)?)
    }

    /// What starts last before an address.
    pub(crate) fn before(&self, address: u64) -> Option<(u64, &T)> {
        self.at(self.find_before(address)?)
    }

    fn find_before(&self, address: u64) -> Option<Slot> {
        let start = match &self.starts {
            None => self.by_start.keys().filter(|start| *start < address).max()?,
            Some(starts) => *starts.range(..address).next_back()?,
        };
        self.by_start.find(start)
    }

    /// All starts, if `by_start` is not small.
    #[inline]
    fn starts(&self) -> &BTreeSet<u64> {
        static NONE: BTreeSet<u64> = BTreeSet::new();
        self.starts.as_deref().unwrap_or(&NONE)
    }

    /// What starts within a range, in the order of addresses.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &T)> {
        let range = range.start..range.end.max(range.start);
        let few = self.by_start.keys().take(if self.by_start.is_small() { FEW } else { 0 });
        let mut few: SmallVec<[u64; FEW]> = few.filter(|start| range.contains(start)).collect();
        few.sort_unstable();
        let many = self.starts().range(range).copied();
        few.into_iter().chain(many).filter_map(|start| Some((start, self.by_start.get(start)?)))
    }

    /// All of them, in the order of addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let mut few: SmallVec<[u64; FEW]> =
            self.by_start.keys().take(if self.by_start.is_small() { FEW } else { 0 }).collect();
        few.sort_unstable();
        let many = self.starts().iter().copied();
        few.into_iter().chain(many).filter_map(|start| Some((start, self.by_start.get(start)?)))
    }

    /// All of them, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.by_start.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_by_the_start_before_it() {
        let mut ranges = <Ranges<_>>::default();
        for start in [16, 64, 32] {
            ranges.insert(start, start);
        }
        assert_eq!(ranges.at_or_before(32), Some((32, &32)));
        assert_eq!(ranges.at_or_before(63), Some((32, &32)));
        assert_eq!(ranges.before(32), Some((16, &16)));
        assert_eq!(ranges.at_or_before(15), None);
        assert_eq!(ranges.remove(32), Some(32));
        assert_eq!(ranges.at_or_before(63), Some((16, &16)));
        assert_eq!(ranges.within(16..64).map(|(start, _)| start).collect::<Vec<_>>(), [16]);
        *ranges.get_or_insert_with(64, || 0).unwrap() += 1;
        *ranges.get_or_insert_with(8, || 0).unwrap() += 1;
        assert_eq!(ranges.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 16, 65]);
    }
}
