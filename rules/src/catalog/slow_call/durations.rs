//! How long the calls of a process took: a coarse distribution of each function, and the slowest of its calls.
//!
//! A call costs one count; nothing is kept of it unless it is very slow.

use urscope_schema::{
    api::{Effect, Function},
    call::Nanos,
    handle::Kind,
};

use crate::finding::Place;

/// From which time on a call is worth remembering, in nanoseconds: no scheduler lets a thread that wants to run wait so long
/// on a machine that is not overloaded.
pub(super) const SLOW: u64 = 10_000_000;

/// How many calls of a function make a distribution.
pub(super) const ENOUGH: u64 = 1000;

/// How many times as long as the median an outlier takes.
pub(super) const OUTLIER: u64 = 100;

/// How many steps each doubling of the time is divided into.
const STEPS: usize = 4;

/// The calls of one function.
#[derive(Clone, Debug)]
struct Column {
    calls: u64,
    /// How many took a time of each step.
    steps: [u32; 64 * STEPS],
    /// Those that took longer than [`SLOW`], and longer than each before.
    slowest: Option<(u64, Place)>,
}

/// The calls of a process, without those that wait for other processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Vec<Option<Box<Column>>>);

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
    /// A call that began at `place` has returned.
    #[inline]
    pub(super) fn note(&mut self, place: Place, returned: Nanos) {
        let Some(function) = place.function.filter(|function| !waits(*function)) else { return };
        let took = returned.0.saturating_sub(place.time.0);
        if self.0.is_empty() {
            self.0.resize_with(Function::COUNT, || None);
        }
        let Some(column) = self.0.get_mut(function as usize) else { return };
        let column = column.get_or_insert_with(|| Box::new(Column { calls: 0, steps: [0; 64 * STEPS], slowest: None }));
        column.calls += 1;
        if let Some(step) = column.steps.get_mut(step(took)) {
            *step = step.saturating_add(1);
        }
        if took >= SLOW && column.slowest.is_none_or(|(slowest, _)| took > slowest) {
            column.slowest = Some((took, place));
        }
    }

    /// The outliers of each function that was called often enough.
    pub(super) fn outliers(&self) -> impl Iterator<Item = Outlier> {
        self.0.iter().flatten().filter_map(|column| {
            let (took, place) = column.slowest.filter(|_| column.calls >= ENOUGH)?;
            let mut below = 0;
            let median = column.steps.iter().position(|count| {
                below += u64::from(*count);
                2 * below >= column.calls
            });
            let median = end(median?);
            let limit = median.saturating_mul(OUTLIER).max(SLOW);
            let outliers = column.steps.get(step(limit) + 1..).unwrap_or_default();
            let outliers = outliers.iter().map(|count| u64::from(*count)).sum::<u64>().max(1);
            (took > limit).then_some(Outlier { place, took, median, calls: column.calls, outliers })
        })
    }
}

/// Whether a call may wait for another process.
fn waits(function: Function) -> bool {
    function.effect() == Effect::Uses(Kind::Event)
}

/// The step of a time.
#[inline]
fn step(took: u64) -> usize {
    let took = took.max(STEPS as u64);
    let doubling = took.ilog2() as usize;
    // The two bits behind the highest.
    doubling * STEPS + (took >> (doubling - 2)) as usize % STEPS
}

/// The longest time of a step.
fn end(step: usize) -> u64 {
    let (doubling, part) = (step / STEPS, (step % STEPS) as u64);
    if doubling < 2 { STEPS as u64 } else { ((STEPS as u64 + part + 1) << (doubling - 2)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_its_step_and_not_in_the_next() {
        for took in [4, 5, 7, 8, 9, 10, 999, 1000, 123_456_789, 1 << 40] {
            let step = step(took);
            assert!(took <= end(step) && took > end(step - 1) || took == 4, "{took}");
        }
    }
}
