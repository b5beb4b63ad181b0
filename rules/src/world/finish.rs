//! What only the end of the run can tell: that there was nothing to judge, and what nobody signalled.

use urscope_schema::call::Nanos;

use super::{
    ProcessId, World,
    scene::{Sight, Waiting},
};
use crate::{
    catalog::When,
    finding::{Finding, Place},
};

impl World {
    /// The run is over. Processes that have not ended are left as they are.
    pub fn finish(&mut self, found: &mut Vec<Finding>) {
        self.look_at_strangers(found);
        if self.ipc_calls == 0 && !self.lives.is_empty() {
            let at = Place { process: ProcessId(0), tid: 0, time: Nanos(0), call: None, function: None, stack: None };
            self.look(When::Run, at, Sight::NoCalls, found);
        }
        for waiting in &self.waits {
            let Some((how, at)) = self.life(waiting.source.process).and_then(|life| life.ended) else { continue };
            let waiting = Waiting { late: waiting.wait.time > at, ..*waiting };
            self.look(When::End, waiting.wait, Sight::Waiting(&waiting, how), found);
        }
    }
}
