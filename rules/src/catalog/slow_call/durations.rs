//! How long the calls of a process took: a distribution for each function, and the slowest of its calls.

use hdrhistogram::Histogram;
use urscope_schema::api::Function;

use crate::{place::Place, tracker::Map};

/// The duration from which on a call is reported, in nanoseconds. A runnable thread may wait for tens of milliseconds
/// on a busy machine, which must not change what is found.
const SLOW_CALL: u64 = 500_000_000;

/// The number of calls of a function that a distribution needs.
const MIN_CALLS: u64 = 1000;

/// How many times as long as the median an outlier takes.
const OUTLIER_FACTOR: u64 = 100;

/// The number of calls of a process that are listed before distributions are made: a run may have very
/// many processes with few calls.
const MAX_LISTED: usize = 64;

/// The calls of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    /// The first calls: the function, and how long it took in nanoseconds.
    listed: Vec<(Function, u64)>,
    /// All calls, if there are more than [`MAX_LISTED`], with one significant digit.
    distributions: Vec<(Function, Histogram<u32>)>,
    /// Of each function, the slowest call of those that took [`SLOW_CALL`] or longer.
    slowest: Map<Function, (u64, Place)>,
}

/// Calls that took far longer than others of their function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlier {
    /// The slowest of them, and how long it took in nanoseconds.
    pub(super) place: Place,
    pub(super) took: u64,
    /// Half of all calls took no longer.
    pub(super) median: u64,
    pub(super) calls: u64,
    /// How many were outliers.
    pub(super) outliers: u64,
}

impl Durations {
    /// A call has returned after `took` nanoseconds that began at `place`.
    pub(super) fn add(&mut self, function: Function, took: u64, place: Place) {
        if took >= SLOW_CALL && self.slowest.get(&function).is_none_or(|(slowest, _)| took > *slowest) {
            self.slowest.insert(function, (took, place));
        }
        if !self.distributions.is_empty() {
            return self.count(function, took);
        }
        self.listed.push((function, took));
        if self.listed.len() > MAX_LISTED {
            for (function, took) in std::mem::take(&mut self.listed) {
                self.count(function, took);
            }
        }
    }

    fn count(&mut self, function: Function, took: u64) {
        if let Some((_, distribution)) = self.distributions.iter_mut().find(|(known, _)| *known == function) {
            // It grows as it has to, so nothing is too long for it.
            let _ = distribution.record(took);
        } else if let Ok(mut new) = Histogram::new(1) {
            let _ = new.record(took);
            self.distributions.push((function, new));
        }
    }

    /// The outliers of each function that was called often enough, in the order of functions.
    pub(super) fn outliers(&self) -> Vec<Outlier> {
        let of = |function: &Function| {
            let (took, place) = *self.slowest.get(function)?;
            let is_it = |(known, all): &&(Function, Histogram<u32>)| known == function && all.len() >= MIN_CALLS;
            let (_, distribution) = self.distributions.iter().find(is_it)?;
            let median = distribution.value_at_quantile(0.5);
            let limit = median.saturating_mul(OUTLIER_FACTOR).max(SLOW_CALL);
            let outliers = distribution.count_between(limit.saturating_add(1), u64::MAX);
            let calls = distribution.len();
            (took > limit).then_some(Outlier { place, took, median, calls, outliers: outliers.max(1) })
        };
        Function::ALL.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use urscope_schema::call::Nanos;

    use super::*;
    use crate::place::ProcessId;

    #[test]
    fn the_first_calls_count_as_the_later_ones_do() {
        let place = Place::outside_calls(ProcessId(0), Nanos(0));
        let function = Function::urIPCGetMemHandleExp;
        let other = Function::urIPCPutMemHandleExp;
        let mut durations = Durations::default();
        durations.add(function, 2 * SLOW_CALL, place);
        (0..MIN_CALLS - 1).for_each(|_| durations.add(other, 1000, place));
        (0..MIN_CALLS - 2).for_each(|_| durations.add(function, 1000, place));
        assert!(durations.outliers().is_empty(), "one call less than enough");
        durations.add(function, 3 * SLOW_CALL, place);
        let [Outlier { took, median, calls, outliers, .. }] = durations.outliers()[..] else { panic!("not one") };
        assert_eq!((took, calls, outliers), (3 * SLOW_CALL, MIN_CALLS, 2));
        assert!((1000..1100).contains(&median), "{median}");
    }

    #[test]
    fn what_is_often_slow_has_no_outliers() {
        let place = Place::outside_calls(ProcessId(0), Nanos(0));
        let mut durations = Durations::default();
        (0..2 * MIN_CALLS).for_each(|call| durations.add(Function::urUSMFree, (call % 3) * 10 * SLOW_CALL, place));
        assert!(durations.outliers().is_empty());
    }
}
