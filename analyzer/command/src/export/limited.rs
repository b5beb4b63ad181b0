//! Draws the timeline of a run while something else analyzes it, and gives up when that takes too long.
//!
//! It is an observer, so that one analysis gives a verdict and a timeline. It must not change or end the analysis.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use urscope_analyzer::analysis::{CallSites, Judgement, Observer, Options};
use urscope_analyzer::lifetimes::LifetimeTracker;
use urscope_rules::Tracker;

use super::{chrome::Chrome, drawing::Written, timeline::Timeline};

/// A timeline in the form of a Chrome trace, for as long as drawing it takes no longer than a limit.
pub(crate) struct LimitedTimeline<'w> {
    drawn: Option<LifetimeTracker<Timeline<Chrome<'w>>>>,
    began: Instant,
    limit: Duration,
}

impl<'w> LimitedTimeline<'w> {
    /// Begins a timeline. The analysis that it observes must begin now.
    pub(crate) fn begin(out: &'w mut dyn Write, options: &Options, limit: Duration) -> Self {
        let drawn = Some(LifetimeTracker::new(Timeline::new(Chrome::begin(out), CallSites::new(options))));
        Self { drawn, began: Instant::now(), limit }
    }

    /// Ends the timeline, with the findings of the analysis. `None` if the limit was reached, so it is incomplete.
    pub(crate) fn end(self, judgement: &Judgement) -> io::Result<Option<Written>> {
        self.drawn.map(|drawn| drawn.into_sink().end(judgement)).transpose()
    }
}

impl Observer for LimitedTimeline<'_> {
    /// Comes before every event, so the limit is checked here.
    fn until(&mut self, tracker: &Tracker, at: u64) {
        self.drawn.take_if(|_| self.began.elapsed() >= self.limit);
        if let Some(drawn) = &mut self.drawn {
            drawn.until(tracker, at);
        }
    }

    fn next(&mut self) -> Option<&mut dyn Observer> {
        self.drawn.as_mut().map(|drawn| drawn as _)
    }
}
