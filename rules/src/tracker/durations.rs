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
pub(crate) const SLOW: u64 = 10_000_000;

/// How many calls of a function make a distribution, more than [`KEPT`].
pub(crate) const ENOUGH: u64 = 1000;

/// How many times as long as the median an outlier takes.
pub(crate) const OUTLIER: u64 = 100;

/// How many steps each doubling of the time is divided into.
const STEPS: usize = 4;

/// How many calls of a process, and then of a function, are kept as they are, before they are counted in a distribution: a run may have
/// very many processes that call little.
const KEPT: usize = 64;

/// The calls of one function.
#[derive(Clone, Debug, Default)]
struct Column {
    calls: u64,
    /// The steps of the first calls, while there is no distribution.
    first: Vec<u8>,
    /// How many took a time of each step.
    steps: Option<Box<[u32; 64 * STEPS]>>,
    /// Those that took longer than [`SLOW`], and longer than each before.
    slowest: Option<Box<(u64, Place)>>,
}

impl Column {
    #[cold]
    #[inline(never)]
    fn note_slow(&mut self, took: u64, place: Place) {
        if self.slowest.as_ref().is_none_or(|slowest| took > slowest.0) {
            self.slowest = Some(Box::new((took, place)));
        }
    }

    #[inline]
    fn count(&mut self, step: usize) {
        self.calls += 1;
        match &mut self.steps {
            Some(steps) => count(&mut **steps, step),
            None => self.count_first(step),
        }
    }

    /// One of the first calls.
    #[cold]
    #[inline(never)]
    fn count_first(&mut self, step: usize) {
        if self.first.len() < KEPT {
            self.first.push(step as u8);
        } else {
            let steps = &mut **self.steps.insert(Box::new([0; 64 * STEPS]));
            for step in std::mem::take(&mut self.first) {
                count(steps, usize::from(step));
            }
            count(steps, step);
        }
    }
}

#[inline]
fn count(steps: &mut [u32], step: usize) {
    if let Some(count) = steps.get_mut(step) {
        *count = count.saturating_add(1);
    }
}

/// The calls of a process, without those that wait for other processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// The functions and the steps of the first calls, up to [`KEPT`], while there are no columns.
    first: Vec<(u8, u8)>,
    columns: Option<Box<Columns>>,
}

/// The calls of each function that was called.
#[derive(Clone, Debug)]
struct Columns {
    /// The place of each function in `all`, from 1 on; 0 if it was not called.
    places: [u8; Function::COUNT],
    all: Vec<Column>,
}

impl Columns {
    /// The column of a function; none of one that waits.
    #[expect(clippy::inline_always, reason = "the function is a constant of some callers")]
    #[inline(always)]
    fn of(&mut self, function: Function) -> Option<&mut Column> {
        let known = self.places.get(function as usize).filter(|place| **place != 0);
        let number = known.copied().or_else(|| self.add(function))?;
        self.all.get_mut(usize::from(number) - 1)
    }

    /// A function is called for the first time, whose place this gives.
    #[cold]
    fn add(&mut self, function: Function) -> Option<u8> {
        if waits(function) {
            return None;
        }
        let place_of = self.places.get_mut(function as usize)?;
        self.all.push(Column::default());
        *place_of = self.all.len() as u8;
        Some(*place_of)
    }
}

/// Calls that took far longer than others of their function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlier {
    /// The slowest of them, and how long it took in nanoseconds.
    pub(crate) place: Place,
    pub(crate) took: u64,
    /// Half of all calls took no longer.
    pub(crate) median: u64,
    pub(crate) calls: u64,
    /// How many were outliers.
    pub(crate) outliers: u64,
}

impl Durations {
    /// A call of `function` that began at that time has returned. `place` says where it began, and is hardly ever asked.
    #[expect(clippy::inline_always, reason = "the place is made only where it is asked for")]
    #[inline(always)]
    pub(crate) fn note(&mut self, function: Function, began: Nanos, returned: Nanos, place: impl FnOnce() -> Place) {
        let took = returned.0.saturating_sub(began.0);
        if self.columns.is_none() && self.keep(function, took) {
            return;
        }
        let Some(columns) = &mut self.columns else { return };
        let Some(column) = columns.of(function) else { return };
        column.count(step(took));
        if took >= SLOW {
            column.note_slow(took, place());
        }
    }

    /// Keeps one of the first calls as it is. False where the columns count it, which there are from then on: a slow call has its place
    /// there.
    #[cold]
    #[inline(never)]
    fn keep(&mut self, function: Function, took: u64) -> bool {
        if waits(function) {
            return true;
        }
        if self.first.len() < KEPT && took < SLOW {
            self.first.push((function as u8, step(took) as u8));
            return true;
        }
        let mut columns = Box::new(Columns { places: [0; Function::COUNT], all: Vec::new() });
        for (function, step) in std::mem::take(&mut self.first) {
            let column = Function::ALL.get(usize::from(function)).and_then(|function| columns.of(*function));
            if let Some(column) = column {
                column.count(usize::from(step));
            }
        }
        self.columns = Some(columns);
        false
    }

    /// The outliers of each function that was called often enough.
    pub(crate) fn outliers(&self) -> impl Iterator<Item = Outlier> {
        let columns = self.columns.iter().flat_map(|columns| {
            columns.places.iter().filter_map(|place| columns.all.get(usize::from(*place).checked_sub(1)?))
        });
        columns.filter_map(|column| {
            let (took, place) = **column.slowest.as_ref().filter(|_| column.calls >= ENOUGH)?;
            let steps = column.steps.as_ref()?;
            let mut below = 0;
            let median = steps.iter().position(|count| {
                below += u64::from(*count);
                2 * below >= column.calls
            });
            let median = end(median?);
            let limit = median.saturating_mul(OUTLIER).max(SLOW);
            let outliers = steps.get(step(limit) + 1..).unwrap_or_default();
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

// The places are bytes.
const _: () = assert!(Function::COUNT < 256 && ENOUGH > KEPT as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_the_calls_before_it_was_made() {
        let (mut column, mut expected) = (Column::default(), [0; 64 * STEPS]);
        for call in 0..3 * KEPT {
            column.count(call % 7);
            expected[call % 7] += 1;
        }
        assert_eq!((column.calls, column.steps.as_deref()), (3 * KEPT as u64, Some(&expected)));
        assert!(column.first.is_empty());
    }

    #[test]
    fn the_columns_have_the_calls_before_they_were_made() {
        let at = |call: usize| (Function::ALL[call % 3], Nanos(1000 * call as u64));
        let place =
            Place { process: crate::ProcessId(0), tid: 0, time: Nanos(0), call: None, function: None, stack: None };
        let calls = |durations: &Durations| {
            let columns = durations.columns.as_ref()?;
            Some(
                columns.all.iter().map(|column| (column.calls, column.slowest.as_deref().copied())).collect::<Vec<_>>(),
            )
        };
        let mut durations = Durations::default();
        for call in 0..KEPT {
            let (function, began) = at(call);
            durations.note(function, began, Nanos(began.0 + 7), || unreachable!());
        }
        assert_eq!((durations.first.len(), calls(&durations)), (KEPT, None));
        let mut slow = durations.clone();
        durations.note(Function::ALL[1], Nanos(0), Nanos(7), || unreachable!());
        assert_eq!(calls(&durations), Some(vec![(22, None), (22, None), (21, None)]));
        slow.note(Function::ALL[2], Nanos(0), Nanos(SLOW), || place);
        assert_eq!(calls(&slow), Some(vec![(22, None), (21, None), (22, Some((SLOW, place)))]));
        let mut first = Durations::default();
        first.note(Function::ALL[0], Nanos(0), Nanos(SLOW), || place);
        assert_eq!(calls(&first), Some(vec![(1, Some((SLOW, place)))]));
    }

    #[test]
    fn a_time_lies_in_its_step_and_not_in_the_next() {
        for took in [4, 5, 7, 8, 9, 10, 999, 1000, 123_456_789, 1 << 40] {
            let step = step(took);
            assert!(took <= end(step) && took > end(step - 1) || took == 4, "{took}");
        }
    }
}
