//! The register of the rules: one file a sin, and one row here.

use crate::finding::Severity;

/// When a rule looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Before a call is passed on.
    Enter,
    /// When a call has returned.
    Exit,
    /// When a process, or the run, is over.
    End,
}

/// A rule: its header and its text.
#[derive(Debug)]
pub struct Rule {
    /// Its name in kebab case: the sin, readable after "allow".
    pub code: &'static str,
    /// How bad the sin is, unless circumstances excuse it.
    pub severity: Severity,
    /// When it looks.
    pub when: When,
    /// The sin in one line.
    pub title: &'static str,
    /// The text of the rule's file, whose head is its documentation.
    pub(crate) source: &'static str,
}
