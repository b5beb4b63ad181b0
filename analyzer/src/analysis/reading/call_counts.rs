//! How often a process has called each function.

use smallvec::SmallVec;
use urscope_schema::api::Function;

/// A count for each function that was called. A process calls few of them, and a run may have very many processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallCounts {
    /// For each function, where its count lies, from 1 on; 0 if it was not called. There are none before the first call.
    places: Option<Box<[u8; Function::COUNT]>>,
    /// The counts, each below its function. A process that shares memory calls six.
    counts: SmallVec<[u64; 6]>,
}

/// The bits of a count. No file has so many records.
const COUNT: u32 = 56;

const _: () = assert!(Function::COUNT < u8::MAX as usize, "a place is a byte");

impl CallCounts {
    /// Counts a call.
    #[inline]
    pub(crate) fn add(&mut self, function: Function) {
        let place =
            self.places.as_deref().and_then(|places| places.get(function as usize)).copied().unwrap_or_default();
        match self.counts.get_mut(usize::from(place).wrapping_sub(1)) {
            Some(count) => *count += 1,
            None => self.add_first(function),
        }
    }

    /// Counts the first call of a function, or the first one at all.
    #[cold]
    fn add_first(&mut self, function: Function) {
        let is_new = self.places.is_none();
        let places = self.places.get_or_insert_with(|| Box::new([0; Function::COUNT]));
        if is_new {
            for (place, count) in (1..).zip(&self.counts) {
                if let Some(of_function) = places.get_mut((*count >> COUNT) as usize) {
                    *of_function = place;
                }
            }
            if places.get(function as usize).is_some_and(|place| *place != 0) {
                return self.add(function);
            }
        }
        self.counts.push((function as u64) << COUNT | 1);
        if let Some(place) = places.get_mut(function as usize) {
            *place = self.counts.len() as u8;
        }
    }

    /// Frees the memory that only [`Self::add`] needs.
    pub(crate) fn shrink(&mut self) {
        self.places = None;
        self.counts.shrink_to_fit();
    }

    /// Whether there was no call.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The functions that were called, in the order of their numbers, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Function, u64)> {
        let mut counts = self.counts.clone();
        counts.sort_unstable();
        let function = |count: u64| Function::ALL.get((count >> COUNT) as usize).copied();
        counts.into_iter().filter_map(move |count| Some((function(count)?, count & ((1 << COUNT) - 1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_its_count() {
        let mut counts = CallCounts::default();
        assert!(counts.is_empty());
        for (index, function) in Function::ALL.iter().enumerate().rev() {
            (0..=index).for_each(|_| counts.add(*function));
        }
        assert!(!counts.is_empty());
        assert!(counts.iter().eq(Function::ALL.iter().copied().zip(1..)));
        counts.shrink();
        assert!(counts.iter().eq(Function::ALL.iter().copied().zip(1..)));
        Function::ALL.iter().rev().for_each(|function| counts.add(*function));
        assert!(counts.iter().eq(Function::ALL.iter().copied().zip(2..)));
    }
}
