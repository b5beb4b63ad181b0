//! Draws the timeline of a run while something else analyzes it, and gives up when that takes too long.
//!
//! It is an observer, so that one analysis gives a verdict and a timeline. It must not change or end the analysis.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use urscope_analyzer::{
    analysis::{CallSites, Ended, FoundFinding, Observer, Options, Stacks},
    lifetimes::LifetimeTracker,
};
use urscope_rules::{ProcessId, Tracker, tracker::fact::Fact};
use urscope_schema::{
    call::{Enter, Exit},
    trace::records::Header,
};

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

    /// Ends the timeline, with the findings of the analysis. `None` if the limit was reached: what is written is not complete.
    pub(crate) fn end(self, findings: &[FoundFinding]) -> io::Result<Option<Written>> {
        self.drawn.map(|drawn| drawn.into_sink().end(findings)).transpose()
    }
}

macro_rules! pass_on {
    ($self:ident.$method:ident$arguments:tt) => {
        if let Some(drawn) = &mut $self.drawn {
            drawn.$method$arguments;
        }
    };
}

impl Observer for LimitedTimeline<'_> {
    /// Comes before every event, so the limit is checked here.
    fn until(&mut self, tracker: &Tracker, at: u64) {
        if self.drawn.is_some() && self.began.elapsed() >= self.limit {
            self.drawn = None;
        }
        pass_on!(self.until(tracker, at));
    }

    fn begin(&mut self, tracker: &Tracker, who: ProcessId, at: u64, header: &Header) {
        pass_on!(self.begin(tracker, who, at, header));
    }

    fn stacks(&mut self, who: ProcessId, stacks: &Stacks) {
        pass_on!(self.stacks(who, stacks));
    }

    fn thread(&mut self, tracker: &Tracker, who: ProcessId, tid: u32, name: &str) {
        pass_on!(self.thread(tracker, who, tid, name));
    }

    fn enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        pass_on!(self.enter(tracker, who, at, enter));
    }

    fn exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        pass_on!(self.exit(tracker, who, at, exit));
    }

    fn inner_enter(&mut self, tracker: &Tracker, who: ProcessId, at: u64, enter: &Enter) {
        pass_on!(self.inner_enter(tracker, who, at, enter));
    }

    fn inner_exit(&mut self, tracker: &Tracker, who: ProcessId, at: u64, exit: &Exit) {
        pass_on!(self.inner_exit(tracker, who, at, exit));
    }

    fn fact(&mut self, at: u64, fact: &Fact<'_>) {
        pass_on!(self.fact(at, fact));
    }

    fn descriptors(&mut self, tracker: &Tracker, who: ProcessId, at: u64, open: u64) {
        pass_on!(self.descriptors(tracker, who, at, open));
    }

    fn end(&mut self, tracker: &Tracker, who: ProcessId, at: u64, ended: Ended) {
        pass_on!(self.end(tracker, who, at, ended));
    }
}
