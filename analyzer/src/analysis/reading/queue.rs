//! A queue of several sources by their next keys.

/// The keys of the next elements of several sources, each with the number of its source. The smallest is first.
#[derive(Clone, Debug)]
pub(crate) struct Queue<K>(Vec<(K, usize)>);

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy> Queue<K> {
    /// With room for so many sources.
    pub(crate) fn with_capacity(sources: usize) -> Self {
        Self(Vec::with_capacity(sources))
    }

    /// The smallest key.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, usize)> {
        self.0.first().copied()
    }

    /// The smallest key but one.
    #[inline]
    pub(crate) fn second(&self) -> Option<(K, usize)> {
        match &*self.0 {
            [_, one, other, ..] => Some(*one.min(other)),
            [_, one] => Some(*one),
            _ => None,
        }
    }

    /// Adds a source.
    pub(crate) fn push(&mut self, key: K, source: usize) {
        let new = (key, source);
        let mut at = self.0.len();
        if at == self.0.capacity() {
            self.0.reserve_exact(at.max(1));
        }
        self.0.push(new);
        while at > 0 {
            let above = (at - 1) / 2;
            match self.0.get(above) {
                Some(other) if new < *other => self.0.swap(at, above),
                _ => return,
            }
            at = above;
        }
    }

    /// Gives the first source another key.
    #[inline]
    pub(crate) fn replace_first(&mut self, key: K) {
        let Some(first) = self.0.first_mut() else { return };
        first.0 = key;
        let moved = *first;
        let mut at = 0;
        loop {
            let below = 2 * at + 1;
            let smaller = match self.0.get(below..) {
                Some([one, other, ..]) => below + usize::from(other < one),
                Some([_]) => below,
                _ => return,
            };
            match self.0.get(smaller) {
                Some(other) if *other < moved => self.0.swap(at, smaller),
                _ => return,
            }
            at = smaller;
        }
    }

    /// Takes the first source away.
    pub(crate) fn pop_first(&mut self) {
        let Some(last) = self.0.pop() else { return };
        if let Some(first) = self.0.first_mut() {
            *first = last;
            self.replace_first(last.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sources_come_in_the_order_of_their_keys(sources in prop::collection::vec(prop::collection::vec(0..50_u32, 1..20), 1..9)) {
            let mut sources: Vec<Vec<u32>> = sources;
            for keys in &mut sources {
                keys.sort_unstable();
            }
            let mut expected: Vec<(u32, usize)> =
                sources.iter().enumerate().flat_map(|(source, keys)| keys.iter().map(move |key| (*key, source))).collect();
            expected.sort_unstable();
            let mut rest: Vec<_> = sources.into_iter().map(Vec::into_iter).collect();
            let mut queue = Queue::default();
            for (source, keys) in rest.iter_mut().enumerate() {
                queue.push(keys.next().unwrap(), source);
            }
            let mut found = Vec::new();
            while let Some(first) = queue.first() {
                found.push(first);
                match rest[first.1].next() {
                    Some(key) => queue.replace_first(key),
                    None => queue.pop_first(),
                }
                if let (Some(first), Some(second)) = (queue.first(), queue.second()) {
                    prop_assert!(first < second);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
