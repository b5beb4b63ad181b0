//! When processes ended what they held after it was freed: the closes of mappings whose memory had gone.

use std::collections::HashMap;

use urscope_rules::tracker::fact::{Fact, What};
use urscope_rules::{Place, ProcessId};

/// The closes that came too late. Only mappings that were open at a free are followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases {
    /// The opens of those that are still open, by process and address.
    open: HashMap<(ProcessId, u64), Vec<Place>>,
    closed: HashMap<Place, Place>,
}

impl Releases {
    /// Takes a fact. The tracker is as it is after it.
    pub(super) fn consume(&mut self, fact: &Fact<'_>) {
        match fact.what {
            What::Freed(freed) => {
                for holder in freed.holders.iter().filter(|holder| holder.is_certain) {
                    self.open.entry((holder.opened.process, holder.pointer)).or_default().push(holder.opened);
                }
            }
            What::Closed(closed) if !self.open.is_empty() => {
                let pointer = closed.handle.value;
                if !fact.tracker.has_open(fact.at.process, pointer) {
                    let opens = self.open.remove(&(fact.at.process, pointer));
                    self.closed.extend(opens.into_iter().flatten().map(|open| (open, fact.at)));
                }
            }
            _ => {}
        }
    }

    /// The close that ended a mapping with this open.
    pub(crate) fn close_of(&self, opened: Place) -> Option<Place> {
        self.closed.get(&opened).copied()
    }

    /// Whether a mapping with this open was open at a free and is not closed.
    pub(crate) fn is_open(&self, opened: Place) -> bool {
        self.open.values().flatten().any(|open| *open == opened)
    }
}
