//! What a rule is: its header, and how it checks a fact. The rules are in [`catalog`](crate::catalog), and
//! [`Checker`](crate::Checker) hands facts to them; this module must know neither.

use std::fmt;

use crate::finding::{Finding, Severity};
use crate::tracker::fact::{Fact, FactKind};

/// A rule: its header, and what it does with a fact.
pub struct Rule {
    /// Its name in kebab case: the violation, readable after "allow".
    pub code: &'static str,
    /// The severity of a violation. A finding may have a lower one.
    pub severity: Severity,
    /// When it reports.
    pub when: When,
    /// The violation in one line.
    pub title: &'static str,
    /// The violation as the end of a sentence that begins with the process: `freed {what} while {other} had it open`.
    /// `{what}` stands for the object, `{other}` for the other process.
    pub sentence: &'static str,
    /// The kinds of facts that it subscribes to.
    pub facts: &'static [FactKind],
    /// How it checks a fact.
    pub check: Check,
}

/// When a rule reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Before a call is passed on.
    Enter,
    /// When a call has returned.
    Exit,
    /// When a process or a context is over.
    End,
    /// When a process or the run is over, from traces only: it needs what only they hold, or all of them.
    Run,
}

/// How a rule checks a fact.
#[derive(Clone, Copy)]
pub enum Check {
    /// By the fact alone.
    Stateless(fn(&Fact<'_>) -> Option<Finding>),
    /// By the fact alone, with any number of findings.
    Each(fn(&Fact<'_>, &mut Vec<Finding>)),
    /// With a state over many facts, which this function creates.
    Stateful(fn() -> Box<dyn RuleState>),
}

/// The state of a rule over many facts. It can be cloned, to report on a run that continues.
pub trait RuleState: CloneState + fmt::Debug + Send + Sync {
    /// Takes a fact of a kind that the rule subscribes to, and adds the findings that follow from it.
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>);
}

/// Clones a boxed rule state. Every state that is `Clone` implements it.
pub trait CloneState {
    /// The copy.
    fn clone_box(&self) -> Box<dyn RuleState>;
}

impl<T: RuleState + Clone + 'static> CloneState for T {
    fn clone_box(&self) -> Box<dyn RuleState> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn RuleState> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}
