//! Ranges of addresses that threads read and change without a lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// At most `N` ranges. New ones replace the oldest. A reader sees a range as it was, as it will be, or an empty one.
#[derive(Debug)]
pub(crate) struct Ranges<const N: usize> {
    /// The first address of each, and the one behind its last; the latter is 0 if there is none.
    all: [[AtomicU64; 2]; N],
    /// How many were added.
    added: AtomicUsize,
    /// From here on lies all that was ever added.
    lowest: AtomicU64,
    /// The greatest end of all that were ever added.
    highest: AtomicU64,
}

/// Memory that this process shares, or has shared.
pub(crate) static SHARED_RANGES: Ranges<128> = Ranges::new();

/// Where shared memory was closed, freed or unmapped, or may have ended with a context, and nothing was opened,
/// allocated or mapped since.
pub(crate) static ENDED_RANGES: Ranges<32> = Ranges::new();

/// The address for which the latest entry of [`SHARED_RANGES`] was made: mostly its start.
pub(crate) static LATEST_RANGE: AtomicU64 = AtomicU64::new(0);

/// Registers what lies around an address that the current call is about to return or has got a handle for: the driver's
/// allocation, or what is mapped of it. The handle data of urscope's backend do not show it to the path of a call.
pub(crate) fn note_block(address: usize, [begins, ends]: [usize; 2]) {
    if LATEST_RANGE.swap(address as u64, Ordering::Relaxed) != address as u64 {
        SHARED_RANGES.add(begins as u64, ends as u64);
    }
}

/// Registers all shared memory as memory that may have ended: which of it is in the context that ends is not known
/// here.
#[cold]
pub(crate) fn may_all_end() {
    LATEST_RANGE.store(0, Ordering::Relaxed);
    let all = SHARED_RANGES.iter().filter(|[begins, ends]| begins < ends);
    all.for_each(|[begins, ends]| ENDED_RANGES.add(begins, ends));
}

/// The physical memory that was exported, imported or mapped last, and where: a handle, whether it is shared, and the
/// first address of a range and the one behind its last. New entries replace the oldest.
static PHYSICAL: [[AtomicU64; 4]; 256] = [const { [const { AtomicU64::new(0) }; 4] }; 256];

/// How many entries of [`PHYSICAL`] there were.
static PHYSICAL_ADDED: AtomicUsize = AtomicUsize::new(0);

/// Registers that physical memory is shared, with the ranges that it is mapped at.
#[cold]
pub(crate) fn share_physical(memory: u64) {
    let mut is_known = false;
    for [of, is_shared, begins, ends] in &PHYSICAL {
        if of.load(Ordering::Relaxed) == memory {
            is_known = true;
            is_shared.store(1, Ordering::Relaxed);
            let [begins, ends] = [begins, ends].map(|end| end.load(Ordering::Relaxed));
            if begins < ends {
                SHARED_RANGES.add(begins, ends);
            }
        }
    }
    if !is_known {
        add_physical(memory, true, [0, 0]);
    }
}

/// Registers new physical memory. Its handle may have been that of other memory.
#[cold]
pub(crate) fn new_physical(memory: u64) {
    for [of, ..] in PHYSICAL.iter().filter(|[of, ..]| of.load(Ordering::Relaxed) == memory) {
        of.store(0, Ordering::Relaxed);
    }
}

/// Registers where physical memory is mapped.
#[cold]
pub(crate) fn map_physical(memory: u64, range @ [begins, ends]: [u64; 2]) {
    let mut of_it = PHYSICAL.iter().filter(|[of, ..]| of.load(Ordering::Relaxed) == memory);
    let is_shared = of_it.any(|[_, is_shared, ..]| is_shared.load(Ordering::Relaxed) != 0);
    add_physical(memory, is_shared, range);
    if is_shared {
        SHARED_RANGES.add(begins, ends);
    }
}

fn add_physical(memory: u64, is_shared: bool, [begins, ends]: [u64; 2]) {
    let place = PHYSICAL_ADDED.fetch_add(1, Ordering::Relaxed) % PHYSICAL.len();
    if let Some(entry) = PHYSICAL.get(place) {
        let new = [memory, u64::from(is_shared), begins, ends];
        entry.iter().zip(new).for_each(|(word, new)| word.store(new, Ordering::Relaxed));
    }
}

impl<const N: usize> Ranges<N> {
    pub(crate) const fn new() -> Self {
        Self {
            all: [const { [const { AtomicU64::new(0) }; 2] }; N],
            added: AtomicUsize::new(0),
            lowest: AtomicU64::new(u64::MAX),
            highest: AtomicU64::new(0),
        }
    }

    /// Whether nothing was ever added.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.highest.load(Ordering::Relaxed) == 0
    }

    /// Whether an address may lie in a range: it lies between the first and the last of all that were ever added.
    #[inline]
    pub(crate) fn may_have(&self, address: u64) -> bool {
        (self.lowest.load(Ordering::Relaxed)..self.highest.load(Ordering::Relaxed)).contains(&address)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = [u64; 2]> {
        self.all
            .iter()
            .take(self.added.load(Ordering::Relaxed))
            .map(|range| range.each_ref().map(|end| end.load(Ordering::Relaxed)))
    }

    /// The range that an address lies in.
    #[inline]
    pub(crate) fn around(&self, address: u64) -> Option<[u64; 2]> {
        if self.may_have(address) { self.find(address) } else { None }
    }

    #[inline(never)]
    fn find(&self, address: u64) -> Option<[u64; 2]> {
        self.iter().find(|[begins, ends]| (*begins..*ends).contains(&address))
    }

    /// Adds a range, in place of the one that begins there.
    #[inline(never)]
    pub(crate) fn add(&self, begins: u64, ends: u64) {
        self.lowest.fetch_min(begins, Ordering::Relaxed);
        self.highest.fetch_max(ends, Ordering::Relaxed);
        let place = self.iter().position(|[known, _]| known == begins);
        let place = place.unwrap_or_else(|| self.added.fetch_add(1, Ordering::Relaxed) % N);
        self.all.get(place).inspect(|range| set(range, begins, ends));
    }

    /// Removes some addresses. Of a range with others on both sides of them, the first part stays.
    #[inline]
    pub(crate) fn remove(&self, begins: u64, ends: u64) {
        if begins < self.highest.load(Ordering::Relaxed) && ends > self.lowest.load(Ordering::Relaxed) {
            self.cut(begins, ends);
        }
    }

    #[inline(never)]
    fn cut(&self, begins: u64, ends: u64) {
        for range in &self.all {
            let [first, end] = range.each_ref().map(|end| end.load(Ordering::Relaxed));
            if begins >= end || ends <= first {
                continue;
            }
            if first < begins { set(range, first, begins) } else { set(range, ends.min(end), end) }
        }
    }
}

fn set([first, end]: &[AtomicU64; 2], begins: u64, ends: u64) {
    end.store(0, Ordering::Relaxed);
    first.store(begins, Ordering::Relaxed);
    end.store(ends, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<const N: usize>(ranges: &Ranges<N>) -> Vec<[u64; 2]> {
        let mut all: Vec<_> = ranges.iter().filter(|[begins, ends]| begins < ends).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_is_taken_again_is_removed() {
        let ranges = Ranges::<2>::new();
        assert_eq!(ranges.around(0), None);
        ranges.add(10, 20);
        ranges.add(30, 40);
        assert_eq!(
            [9, 10, 19, 20, 29, 30, 40].map(|it| ranges.around(it).is_some()),
            [false, true, true, false, false, true, false]
        );
        ranges.remove(15, 32);
        assert_eq!(sorted(&ranges), [[10, 15], [32, 40]]);
        ranges.remove(34, 36);
        assert_eq!(sorted(&ranges), [[10, 15], [32, 34]]);
        ranges.add(32, 50);
        ranges.remove(0, 15);
        ranges.remove(60, 70);
        assert_eq!(sorted(&ranges), [[32, 50]]);
        ranges.add(100, 110);
        ranges.add(200, 210);
        assert_eq!(sorted(&ranges), [[100, 110], [200, 210]], "the oldest are replaced");
    }
}
