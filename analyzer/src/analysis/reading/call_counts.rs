//! How often a process has called each function.

use urscope_schema::api::Function;

/// A count for each function that was called. A process calls few of them, and a run may have very many processes.
#[derive(Clone)]
pub(crate) struct CallCounts {
    /// For each function, where its count lies, from 1 on; 0 if it was not called.
    places: [u8; Function::COUNT],
    counts: Vec<u64>,
}

const _: () = assert!(Function::COUNT < u8::MAX as usize, "a place is a byte");

impl Default for CallCounts {
    fn default() -> Self {
        Self { places: [0; Function::COUNT], counts: Vec::new() }
    }
}

impl CallCounts {
    /// Counts a call.
    #[inline]
    pub(crate) fn add(&mut self, function: Function) {
        let Some(place) = self.places.get_mut(function as usize) else { return };
        if let Some(count) = self.counts.get_mut((*place as usize).wrapping_sub(1)) {
            *count += 1;
        } else {
            self.counts.push(1);
            *place = self.counts.len() as u8;
        }
    }

    /// Whether there was no call.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The functions that were called, in the order of their numbers, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Function, u64)> {
        let count = |place: &u8| self.counts.get((*place as usize).wrapping_sub(1)).copied();
        Function::ALL.iter().zip(&self.places).filter_map(move |(function, place)| Some((*function, count(place)?)))
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
    }
}
