//! The spans of merging in a profile: one per batch of events, with the share of the rules in it.

use std::time::{Duration, Instant};

use tracing::span::EnteredSpan;

/// How many events one span covers.
const BATCH: u32 = 1 << 16;

/// The span of the present batch. Without a profile it costs one test per event.
pub(super) struct MergeSpans {
    span: Option<EnteredSpan>,
    events: u32,
    checking: Duration,
}

impl MergeSpans {
    pub(super) fn start() -> Self {
        let span = tracing::info_span!("merging", events = tracing::field::Empty, checking_us = tracing::field::Empty);
        Self { span: (!span.is_disabled()).then(|| span.entered()), events: 0, checking: Duration::ZERO }
    }

    /// Runs the tracker and the rules on one event.
    #[inline]
    pub(super) fn checking(&mut self, check: impl FnOnce()) {
        if self.span.is_none() {
            return check();
        }
        let began = Instant::now();
        check();
        self.checking += began.elapsed();
        self.events += 1;
        if self.events == BATCH {
            *self = Self::start();
        }
    }
}

impl Drop for MergeSpans {
    fn drop(&mut self) {
        if let Some(span) = &self.span {
            span.record("events", self.events).record("checking_us", self.checking.as_micros() as u64);
        }
    }
}
