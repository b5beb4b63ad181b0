//! The register of the rules: one file a violation, and two rows here.
//!
//! A rule reads the tracker and says what it found; it must never keep a state of its own. The head of its file is its
//! documentation, and the two traces in it are its test ([`crate::scenario`]).

mod calls_lost;
mod churn;
mod close_of_unknown;
mod descriptor_closed_twice;
mod descriptor_growth;
mod double_close;
mod double_put;
mod double_release;
mod export_of_import;
mod export_without_flag;
mod exporter_gone;
mod freed_while_exported;
mod freed_while_open;
mod garbage_handle;
mod get_of_freed;
mod get_without_open;
mod invalid_argument;
mod leaked_event;
mod leaked_handle;
mod leaked_mapping;
mod leaked_physical_memory;
mod never_signalled;
mod no_calls_seen;
mod open_close_mismatch;
mod open_in_producer;
mod page;
mod permission_denied;
mod profiled_ipc_event;
mod put_of_unknown;
mod size_mismatch;
mod slab_exposed;
mod slow_call;
mod stale_handle;
mod success_without_result;
mod unsupported_device;
mod untraced_peer;
mod use_after_close;
mod use_after_free;
mod use_after_put;
mod wording;
mod wrong_context;
mod wrong_device;
mod wrong_kind;

use crate::{
    finding::{Finding, Severity},
    tracker::fact::Fact,
};

pub use page::{Page, rules_md};

/// All rules, by name.
pub static RULES: &[&Rule] = &[
    &calls_lost::RULE,
    &churn::RULE,
    &close_of_unknown::RULE,
    &descriptor_closed_twice::RULE,
    &descriptor_growth::RULE,
    &double_close::RULE,
    &double_put::RULE,
    &double_release::RULE,
    &export_of_import::RULE,
    &export_without_flag::RULE,
    &exporter_gone::RULE,
    &freed_while_exported::RULE,
    &freed_while_open::RULE,
    &garbage_handle::RULE,
    &get_of_freed::RULE,
    &get_without_open::RULE,
    &invalid_argument::RULE,
    &leaked_event::RULE,
    &leaked_handle::RULE,
    &leaked_mapping::RULE,
    &leaked_physical_memory::RULE,
    &never_signalled::RULE,
    &no_calls_seen::RULE,
    &open_close_mismatch::RULE,
    &open_in_producer::RULE,
    &permission_denied::RULE,
    &profiled_ipc_event::RULE,
    &put_of_unknown::RULE,
    &size_mismatch::RULE,
    &slab_exposed::RULE,
    &slow_call::RULE,
    &stale_handle::RULE,
    &success_without_result::RULE,
    &unsupported_device::RULE,
    &untraced_peer::RULE,
    &use_after_close::RULE,
    &use_after_free::RULE,
    &use_after_put::RULE,
    &wrong_context::RULE,
    &wrong_device::RULE,
    &wrong_kind::RULE,
];

/// The rule of the run in which there was nothing to judge.
pub static NO_CALLS_SEEN: &Rule = &no_calls_seen::RULE;

/// When a rule looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Before a call is passed on.
    Enter,
    /// When a call has returned.
    Exit,
    /// When a process or a context is over.
    End,
    /// When a process or the run is over, by the judge alone: it takes what only traces hold, or all of them.
    Run,
}

/// A rule: its header, its text and its eye.
pub struct Rule {
    /// Its name in kebab case: the violation, readable after "allow".
    pub code: &'static str,
    /// How bad the violation is, unless circumstances excuse it.
    pub severity: Severity,
    /// When it looks.
    pub when: When,
    /// The violation in one line.
    pub title: &'static str,
    /// The text of the rule's file, whose head is its documentation.
    source: &'static str,
    check: fn(&Fact<'_>) -> Option<Finding>,
}

impl Rule {
    /// The rule of that name.
    pub fn named(code: &str) -> Option<&'static Self> {
        RULES.iter().copied().find(|rule| rule.code == code)
    }

    /// Its documentation.
    pub fn page(&self) -> Page {
        Page::of(self.source)
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

/// Lets every rule of that moment check.
pub(crate) fn check(when: When, fact: &Fact<'_>, found: &mut Vec<Finding>) {
    found.extend(RULES.iter().filter(|rule| rule.when == when).filter_map(|rule| (rule.check)(fact)));
}
