//! A long sorted list whose copies share unchanged parts.
//!
//! The page shows a run that grows. Each snapshot keeps its own list of calls while the list of the next one grows.
//! Copying a list costs one pointer per chunk, and the first change of a shared chunk copies this chunk.

use std::sync::Arc;

/// The maximum number of entries of a chunk. A longer chunk is split.
const LONGEST: usize = 4096;

/// Entries, sorted by a key.
#[derive(Clone, Debug)]
pub(super) struct SharedList<T> {
    parts: Vec<Arc<Vec<T>>>,
    /// The index of the first entry of each chunk.
    starts: Vec<usize>,
    length: usize,
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), starts: Vec::new(), length: 0 }
    }
}

impl<T: Clone> SharedList<T> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// All entries from an index on, in order.
    pub(super) fn iter_from(&self, index: usize) -> impl Iterator<Item = &T> {
        let (chunk, offset) = self.place(index);
        self.parts.iter().skip(chunk).flat_map(|chunk| chunk.iter()).skip(offset)
    }

    pub(super) fn get(&self, index: usize) -> Option<&T> {
        let (chunk, offset) = self.place(index);
        self.parts.get(chunk)?.get(offset)
    }

    /// Inserts an entry after all entries whose keys are not greater. Inserting near the end is cheap.
    pub(super) fn insert<K: Ord>(&mut self, entry: T, key: impl Fn(&T) -> K) {
        let wanted = key(&entry);
        let chunks = self.parts.partition_point(|chunk| chunk.first().is_some_and(|first| key(first) <= wanted));
        let index = chunks.saturating_sub(1);
        self.length += 1;
        let Some(shared) = self.parts.get_mut(index) else {
            self.parts.push(Arc::new(vec![entry]));
            self.starts.push(0);
            return;
        };
        let chunk = Arc::make_mut(shared);
        chunk.insert(chunk.partition_point(|known| key(known) <= wanted), entry);
        if chunk.len() > LONGEST {
            // At the end, full chunks are kept full, for entries that arrive in order.
            let at = if index + 1 == self.starts.len() { LONGEST } else { LONGEST / 2 };
            let rest = chunk.split_off(at);
            self.parts.insert(index + 1, Arc::new(rest));
            self.starts.push(0);
        }
        let mut start = self.starts.get(index).copied().unwrap_or_default();
        for (known, chunk) in self.starts.iter_mut().zip(&self.parts).skip(index) {
            *known = start;
            start += chunk.len();
        }
    }

    /// The entry with a key, to modify it.
    pub(super) fn find_mut<K: Ord>(&mut self, wanted: &K, key: impl Fn(&T) -> K) -> Option<&mut T> {
        let chunks = self.parts.partition_point(|chunk| chunk.first().is_some_and(|first| key(first) <= *wanted));
        let chunk = self.parts.get_mut(chunks.checked_sub(1)?)?;
        let place = chunk.binary_search_by(|known| key(known).cmp(wanted)).ok()?;
        Arc::make_mut(chunk).get_mut(place)
    }

    fn place(&self, index: usize) -> (usize, usize) {
        let chunk = self.starts.partition_point(|start| *start <= index).saturating_sub(1);
        (chunk, index - self.starts.get(chunk).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn it_behaves_like_a_sorted_list(steps in prop::collection::vec(0..50_u32, 9000..12_000)) {
            let (mut list, mut plain): (SharedList<(u32, usize)>, Vec<_>) = (SharedList::default(), Vec::new());
            let mut copies = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                // Nearly in order, as calls arrive.
                let key = (number as u32).saturating_sub(step * step * step);
                list.insert((key, number), |entry| entry.0);
                plain.push((key, number));
                if number % 4001 == 0 {
                    copies.push((list.clone(), plain.clone()));
                }
            }
            *list.find_mut(&plain[7].0, |entry| entry.0).unwrap() = (plain[7].0, usize::MAX);
            for (copy, mut plain) in copies {
                plain.sort_by_key(|entry| entry.0);
                prop_assert_eq!(copy.iter_from(0).copied().collect::<Vec<_>>(), plain);
            }
            plain.sort_by_key(|entry| entry.0);
            prop_assert_eq!(list.len(), plain.len());
            for index in (0..plain.len()).step_by(997) {
                prop_assert_eq!(list.get(index).unwrap().0, plain[index].0);
                prop_assert_eq!(list.iter_from(index).next().unwrap().0, plain[index].0);
            }
            prop_assert_eq!(list.get(plain.len()), None);
        }
    }
}
