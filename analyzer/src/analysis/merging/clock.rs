//! One axis of time for a run: nanoseconds since its first process began.
//!
//! Within a host the monotonic clock tells times apart. Hosts are related by the real time at which the first process of
//! each began; one whose real time is not known is taken to have begun with the first.

use urscope_schema::call::Nanos;

/// How the monotonic clock of a host lies on the alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockAlignment {
    /// When the first process of the host began, by its own clock.
    pub(crate) zero: Nanos,
    /// How much later that was than the beginning of the run.
    pub(crate) shift: u64,
}

impl ClockAlignment {
    /// A moment of the host on the alignment.
    pub(crate) fn at(self, time: Nanos) -> u64 {
        self.on_host(time).saturating_add(self.shift)
    }

    /// The same moment, in nanoseconds since the first process of the host began.
    pub(crate) fn on_host(self, time: Nanos) -> u64 {
        time.0.saturating_sub(self.zero.0)
    }
}

/// When the first of all hosts began, by the real times of all that are known.
pub(crate) fn first(began: impl Iterator<Item = u64>) -> u64 {
    began.filter(|time| *time > 0).min().unwrap_or_default()
}

/// How much later than `first` a host began at the real time `began`.
pub(crate) fn shift(began: u64, first: u64) -> u64 {
    if began == 0 { 0 } else { began.saturating_sub(first) }
}
