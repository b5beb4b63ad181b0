//! The checker: passes each fact to the rules that subscribe to its kind, and collects their findings.
//!
//! It stores the state of the rules that have one, and uses nothing of a rule but its [`Rule`]. It never follows calls
//! by itself: [`crate::Tracker`] does. The validation layer uses it while a program runs, and the analyzer afterwards.

use std::num::NonZeroU64;

use crate::catalog::RULES;
use crate::finding::Finding;
use crate::place::{Place, ProcessId};
use crate::rule::{Check, Rule, RuleState};
use crate::tracker::Map;
use crate::tracker::fact::{Fact, FactConsumer, FactKind};

/// Rules at work on one run.
///
/// A clone is independent: its run can be finished while the original continues.
#[derive(Debug)]
pub struct Checker {
    states: Vec<Box<dyn RuleState>>,
    /// The rules that subscribe to each kind of fact.
    subscribers: [Vec<Subscriber>; FactKind::COUNT],
    found: Vec<Finding>,
    /// The latest call of each thread in which something was found: it explains why the call is refused.
    explained: Map<(ProcessId, u32), NonZeroU64>,
}

/// A rule that subscribes to a kind of fact.
#[derive(Clone, Copy, Debug)]
enum Subscriber {
    Stateless(fn(&Fact<'_>) -> Option<Finding>),
    Each(fn(&Fact<'_>, &mut Vec<Finding>)),
    /// The rule with this index in `states`.
    Stateful(usize),
}

impl Clone for Checker {
    fn clone(&self) -> Self {
        Self {
            states: self.states.clone(),
            subscribers: self.subscribers.clone(),
            found: Vec::new(),
            explained: self.explained.clone(),
        }
    }
}

impl Default for Checker {
    fn default() -> Self {
        Self::new()
    }
}

impl Checker {
    /// With all rules of the catalogue.
    pub fn new() -> Self {
        Self::with_rules(RULES.iter().copied())
    }

    /// With these rules.
    pub fn with_rules<'r>(rules: impl IntoIterator<Item = &'r Rule>) -> Self {
        let mut checker = Self {
            states: Vec::new(),
            subscribers: [const { Vec::new() }; FactKind::COUNT],
            found: Vec::new(),
            explained: Map::default(),
        };
        for rule in rules {
            let subscriber = match rule.check {
                Check::Stateless(check) => Subscriber::Stateless(check),
                Check::Each(check) => Subscriber::Each(check),
                Check::Stateful(new) => {
                    checker.states.push(new());
                    Subscriber::Stateful(checker.states.len() - 1)
                }
            };
            for kind in rule.facts {
                if let Some(subscribers) = checker.subscribers.get_mut(*kind as usize) {
                    subscribers.push(subscriber);
                }
            }
        }
        checker
    }

    /// The findings since the last call, in the order in which they were found.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.found)
    }

    /// Whether nothing was found since [`Self::take`].
    pub fn is_silent(&self) -> bool {
        self.found.is_empty()
    }
}

impl FactConsumer for Checker {
    fn consume(&mut self, fact: &Fact<'_>) {
        let thread = (fact.at.process, fact.at.tid);
        let kind = fact.what.kind();
        let known = self.found.len();
        if kind == FactKind::CallFailed && self.explained.get(&thread).copied() == fact.at.call {
            return;
        }
        let Some(subscribers) = self.subscribers.get(kind as usize) else { return };
        for subscriber in subscribers {
            match *subscriber {
                Subscriber::Stateful(index) => {
                    if let Some(state) = self.states.get_mut(index) {
                        state.check(fact, &mut self.found);
                    }
                }
                Subscriber::Stateless(check) => {
                    if let Some(finding) = check(fact) {
                        self.found.push(finding);
                    }
                }
                Subscriber::Each(check) => check(fact, &mut self.found),
            }
        }
        let is_here = |at: &Place| (at.process, at.call) == (fact.at.process, fact.at.call);
        if let Some(call) = fact.at.call
            && self.found.iter().skip(known).any(|finding| is_here(&finding.at))
        {
            self.explained.insert(thread, call);
        }
    }

    fn wants(&self, kind: FactKind) -> bool {
        self.subscribers.get(kind as usize).is_some_and(|subscribers| !subscribers.is_empty())
    }
}
