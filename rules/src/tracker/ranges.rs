//! Memory by address: found by its start with one probe of a hash table, by an address inside it with one search.

use std::{collections::BTreeSet, ops::Range};

use super::hash::Map;

/// Values by the address at which their memory starts.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<T> {
    by_start: Map<u64, T>,
    starts: BTreeSet<u64>,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { by_start: Map::default(), starts: BTreeSet::new() }
    }
}

impl<T> Ranges<T> {
    /// What starts at an address.
    #[inline]
    pub(crate) fn get(&self, start: u64) -> Option<&T> {
        self.by_start.get(&start)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, start: u64) -> Option<&mut T> {
        self.by_start.get_mut(&start)
    }

    pub(crate) fn insert(&mut self, start: u64, value: T) {
        if self.by_start.insert(start, value).is_none() {
            self.starts.insert(start);
        }
    }

    /// What starts at an address, made by `new` if nothing does.
    pub(crate) fn get_or_insert_with(&mut self, start: u64, new: impl FnOnce() -> T) -> &mut T {
        self.by_start.entry(start).or_insert_with(|| {
            self.starts.insert(start);
            new()
        })
    }

    pub(crate) fn remove(&mut self, start: u64) -> Option<T> {
        let removed = self.by_start.remove(&start);
        if removed.is_some() {
            self.starts.remove(&start);
        }
        removed
    }

    /// What starts last at an address or before it.
    #[inline]
    pub(crate) fn at_or_before(&self, address: u64) -> Option<(u64, &T)> {
        if let Some(exact) = self.by_start.get(&address) {
            return Some((address, exact));
        }
        self.before(address)
    }

    /// What starts last before an address.
    pub(crate) fn before(&self, address: u64) -> Option<(u64, &T)> {
        let start = *self.starts.range(..address).next_back()?;
        Some((start, self.by_start.get(&start)?))
    }

    /// What starts within a range, in the order of addresses.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &T)> {
        let range = range.start..range.end.max(range.start);
        self.starts.range(range).filter_map(|start| Some((*start, self.by_start.get(start)?)))
    }

    /// All of them, in the order of addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.starts.iter().filter_map(|start| Some((*start, self.by_start.get(start)?)))
    }

    /// All of them, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.by_start.iter_mut().map(|(start, value)| (*start, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_by_the_start_before_it() {
        let mut ranges = Ranges::default();
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
        *ranges.get_or_insert_with(64, || 0) += 1;
        *ranges.get_or_insert_with(8, || 0) += 1;
        assert_eq!(ranges.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 16, 65]);
    }
}
