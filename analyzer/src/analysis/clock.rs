//! Clock alignment: converts the clocks of all hosts to nanoseconds since the first process of the run began.
//!
//! Within a host, times are those of its monotonic clock. Hosts are aligned by the real time at which the first process
//! of each began. A host whose real time is not known counts as begun with the first host.

use urscope_schema::call::Nanos;

/// Converts times of a host's monotonic clock to times of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockAlignment {
    /// When the first process of the host began, on the host's monotonic clock.
    pub(crate) zero: Nanos,
    /// How much later than the run that process began, in nanoseconds.
    pub(crate) shift: u64,
}

impl ClockAlignment {
    /// A time of the host, in nanoseconds since the run began.
    pub(crate) fn at(self, time: Nanos) -> u64 {
        self.on_host(time).saturating_add(self.shift)
    }

    /// A time of the host, in nanoseconds since its first process began.
    pub(crate) fn on_host(self, time: Nanos) -> u64 {
        time.0.saturating_sub(self.zero.0)
    }
}

/// The earliest of the real times at which hosts began, in nanoseconds. Unknown times are 0 and ignored.
pub(crate) fn first(began: impl Iterator<Item = u64>) -> u64 {
    began.filter(|time| *time > 0).min().unwrap_or_default()
}

/// How much later than `first` the real time `began` is, in nanoseconds; 0 if `began` is unknown.
pub(crate) fn shift(began: u64, first: u64) -> u64 {
    if began == 0 { 0 } else { began.saturating_sub(first) }
}
