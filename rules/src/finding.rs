//! The finding that a rule reports.
//!
//! A finding is complete: who, what, where, the other side, and what to do. It is made once, by its rule, and only
//! counted and shown afterwards.

use serde::{Deserialize, Serialize};
use urscope_schema::api::{Promise, ResultCode};
use urscope_schema::handle::Handle;

pub use crate::place::Place;
use crate::rule::Rule;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the specification allows it, or it cannot be proved.
    Note,
    /// Resources are lost.
    Warning,
    /// The specification forbids it.
    Error,
}

impl Severity {
    /// All of them, the mildest first.
    pub const ALL: [Self; 3] = [Self::Note, Self::Warning, Self::Error];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A violation, with what proves it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// Its severity: that of the rule, or a lower one where the violation is excused or not proved.
    pub severity: Severity,
    /// Where it happened.
    pub at: Place,
    /// A second place: where the handle was got, opened or put before, in this process or another one.
    pub other: Option<Place>,
    /// The places in further processes on the other side, one in each.
    pub others: Vec<Place>,
    /// The object; none where the finding is about the whole run.
    pub subject: Option<Handle>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The fingerprint of its handle data.
    pub fingerprint: Option<u64>,
    /// How many findings this one stands for: more than 1 only for very many leftovers of a process.
    pub count: u64,
    /// What happened, in one sentence with the values that prove it.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// The result to return for the call if it is not passed on, or if its success is turned into an error.
    pub answer: Option<ResultCode>,
}

impl Finding {
    /// A finding of its rule's own severity.
    pub fn new(rule: &'static Rule, at: Place, subject: Handle, message: String) -> Self {
        Self { subject: Some(subject), ..Self::of_call(rule, at, message) }
    }

    /// A finding that is not about an object.
    pub fn of_call(rule: &'static Rule, at: Place, message: String) -> Self {
        Self {
            rule,
            severity: rule.severity,
            at,
            other: None,
            others: Vec::new(),
            subject: None,
            size: None,
            fingerprint: None,
            count: 1,
            message,
            advice: String::new(),
            answer: None,
        }
    }

    /// With the documented result of a call that violates the specification in this way.
    #[must_use]
    pub fn answer(self, result: ResultCode) -> Self {
        Self { answer: Some(result), ..self }
    }

    /// With the other place.
    #[must_use]
    pub fn other(self, other: Option<Place>) -> Self {
        Self { other, ..self }
    }

    /// With the size in bytes and the fingerprint of the object.
    #[must_use]
    pub fn values(self, size: Option<u64>, fingerprint: Option<u64>) -> Self {
        Self { size, fingerprint, ..self }
    }

    /// With what to do.
    #[must_use]
    pub fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    /// This finding, unless an interface promises what makes it no violation there.
    pub fn unless(self, promise: Promise) -> Option<Self> {
        (!self.is_promised(promise)).then_some(self)
    }

    /// A note where an interface promises this, unless the finding stands for many.
    #[must_use]
    pub fn note_where(self, promise: Promise) -> Self {
        if self.count == 1 && self.is_promised(promise) { self.at_most(Severity::Note) } else { self }
    }

    /// At most a note, where the interface promises this, unless it `grows`.
    #[must_use]
    pub fn note_unless(self, grows: bool, promise: Promise) -> Self {
        if !grows && self.is_promised(promise) { self.at_most(Severity::Note) } else { self }
    }

    /// Whether the interface of one of its two calls promises this.
    fn is_promised(&self, promise: Promise) -> bool {
        self.at.promises(promise) || self.other.is_some_and(|other| other.promises(promise))
    }

    /// Of this severity, if the rule's own is higher.
    #[must_use]
    pub fn at_most(self, severity: Severity) -> Self {
        Self { severity: self.severity.min(severity), ..self }
    }
}
