//! The descriptors of a process: how many were open after how many IPC calls, and how much of that its handles explain.

use urscope_schema::call::Nanos;

/// How many samples are kept: when there are more, every second one is dropped.
const MAX_SAMPLES: usize = 128;

/// How many samples a result needs.
const MIN_SAMPLES: usize = 8;

/// By how many descriptors a process must have grown.
const MIN_GROWTH: u64 = 32;

/// One sample of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) at: Nanos,
    /// How many IPC calls had begun.
    pub(super) calls: u64,
    /// How many descriptors were open.
    pub(super) descriptors: u64,
    /// How many handles, mappings and objects that can be shared it held.
    pub(super) held: u64,
    /// How many descriptors it had exported and was to close, as far as their numbers did not come again.
    pub(super) exported: u64,
}

/// All samples of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    history: Vec<Sample>,
    /// One sample of 2^`every` is kept.
    every: u32,
    taken: u64,
    latest: Option<Sample>,
}

/// A number of descriptors that grew until the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) from: Sample,
    pub(super) to: Sample,
    /// How many may be open (`RLIMIT_NOFILE`).
    pub(super) limit: Option<u64>,
}

impl Growth {
    /// By how many descriptors it grew.
    pub(super) const fn descriptors(&self) -> u64 {
        self.to.descriptors.saturating_sub(self.from.descriptors)
    }

    /// By how many handles, mappings and objects it grew.
    pub(super) const fn held(&self) -> u64 {
        self.to.held.saturating_sub(self.from.held)
    }

    /// By how many exported descriptors it grew.
    pub(super) const fn exported(&self) -> u64 {
        self.to.exported.saturating_sub(self.from.exported)
    }

    /// After how many more IPC calls the limit is reached.
    pub(super) fn calls_until_limit(&self) -> Option<u64> {
        let room = u128::from(self.limit?.saturating_sub(self.to.descriptors));
        let calls = u128::from(self.to.calls.saturating_sub(self.from.calls));
        u64::try_from(room * calls / u128::from(self.descriptors().max(1))).ok()
    }
}

impl Samples {
    pub(super) fn add(&mut self, sample: Sample) {
        self.latest = Some(sample);
        if self.taken.is_multiple_of(1 << self.every) {
            self.history.push(sample);
        }
        self.taken += 1;
        if self.history.len() >= MAX_SAMPLES {
            let mut kept = false;
            self.history.retain(|_| {
                kept = !kept;
                kept
            });
            self.every += 1;
        }
    }

    /// The growth, if the number grew in both parts of the run: after its first quarter, in which the runtime opens its
    /// own descriptors, up to the middle of the rest, and from there to the end. `limit` is how many may be open.
    pub(super) fn growth(&self, limit: Option<u64>) -> Option<Growth> {
        let last = self.latest?;
        let count = self.history.len();
        if count < MIN_SAMPLES {
            return None;
        }
        let from = self.history.get(count / 4)?;
        let middle = self.history.get(count / 8 * 5)?;
        let growth = |from: &Sample, to: &Sample| to.descriptors.saturating_sub(from.descriptors);
        let first = growth(from, middle);
        let second = growth(middle, &last);
        // A number that stops growing is that of a full cache.
        let still_grows = first > 0 && second >= first.div_ceil(4);
        (still_grows && growth(from, &last) >= MIN_GROWTH).then_some(Growth { from: *from, to: last, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(descriptors: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::default();
        for (calls, descriptors) in (0..).zip(descriptors) {
            samples.add(Sample { at: Nanos(calls), calls: 10 * calls, descriptors, held: 0, exported: 0 });
        }
        samples
    }

    #[test]
    fn growth_until_the_end_is_reported_with_a_forecast() {
        for length in [16, 127, 128, 129, 5000_u64] {
            let growth = samples((0..length).map(|n| 5 + 4 * n)).growth(Some(1024)).expect("it grows");
            let descriptors = growth.descriptors();
            let calls = growth.to.calls - growth.from.calls;
            assert_eq!((growth.to.descriptors, descriptors * 10), (1 + 4 * length, calls * 4), "{length}");
            assert_eq!(growth.calls_until_limit(), Some(1024_u64.saturating_sub(growth.to.descriptors) * 10 / 4));
        }
    }

    #[test]
    fn numbers_that_settle_oscillate_or_grow_little_are_not_reported() {
        assert!(samples((0..1000).map(|n| 5 + n.min(400))).growth(None).is_none(), "a cache that is full");
        assert!(samples((0..1000).map(|n| 5 + n % 50)).growth(None).is_none(), "up and down");
        assert!(samples((0..1000).map(|n| 5 + n / 40)).growth(None).is_none(), "little");
        assert!(samples((0..7).map(|n| 5 + 50 * n)).growth(None).is_none(), "few samples");
    }
}
