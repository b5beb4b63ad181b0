//! What only the end of the run can tell: that there was nothing to judge, what nobody opened, and what nobody signalled.

use urscope_schema::{api::Function, call::Nanos};

use super::{
    ProcessId, Tracker,
    exports::Export,
    fact::{Unopened, Waiting, What},
    hash::{Map, Set},
};
use crate::{
    catalog::When,
    finding::{Finding, Place},
};

impl Tracker {
    /// The run is over. Processes that have not ended are left as they are.
    pub fn finish(&mut self, found: &mut Vec<Finding>) {
        self.look_at_strangers(found);
        if self.ipc_calls == 0 && !self.lives.is_empty() {
            let at = Place { process: ProcessId(0), tid: 0, time: Nanos(0), call: None, function: None, stack: None };
            self.report(When::Run, at, What::NoCalls, found);
        }
        for unopened in self.unopened() {
            self.report(When::Run, unopened.got, What::Unopened(&unopened), found);
        }
        for waiting in &self.waits {
            let Some((how, at)) = self.life(waiting.source.process).and_then(|life| life.ended) else { continue };
            let waiting = Waiting { late: waiting.wait.time > at, ..*waiting };
            self.report(When::Run, waiting.wait, What::Waiting(&waiting, how), found);
        }
    }

    /// What nobody has tried to open where everybody who could have is known, and others are served: one for each place that
    /// got it, in the order of time.
    fn unopened(&self) -> Vec<Unopened> {
        // Who is forgotten may have been served.
        if self.exports.have_forgotten() {
            return Vec::new();
        }
        let unknown = |host: &u64| self.strangers.contains(host) || self.lives.iter().any(|life| life.may_open(*host));
        let hosts: Set<u64> = self.exchanging.iter().copied().filter(|host| !unknown(host)).collect();
        let mut places: Map<(u32, Option<Function>, Option<u64>), Unopened> = Map::default();
        for export in self.exports.unopened(|host| hosts.contains(&host)) {
            let Place { process, function, stack, .. } = export.got;
            let told = places.entry((process.0, function, stack)).or_insert_with(|| of(export));
            let count = told.count + 1;
            if export.got.time < told.got.time {
                *told = of(export);
            }
            told.count = count;
        }
        let mut all: Vec<_> = places.into_values().collect();
        all.sort_by_key(|unopened| (unopened.got.time, unopened.got.process, unopened.got.call));
        all
    }
}

fn of(export: &Export) -> Unopened {
    let subject = export.subject;
    let (kind, value, size) = (subject.kind, subject.value, subject.size);
    Unopened { got: export.got, kind, value, size, fingerprint: export.fingerprint(), count: 0 }
}
