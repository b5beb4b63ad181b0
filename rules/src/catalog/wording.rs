//! How findings speak: lower case, no final stop, with the values and both places.

use urscope_schema::{
    api::UrResult,
    handle::{Handle, Kind},
};

use crate::{
    catalog::Rule,
    finding::{Finding, Place, Severity},
    tracker::{
        ProcessId, Tracker,
        fact::{Fact, Left, Opened, Stale},
        records::Object,
    },
};

impl Finding {
    /// A finding of its rule's own severity.
    pub(super) fn new(rule: &'static Rule, at: Place, subject: Handle, message: String) -> Self {
        Self { subject: Some(subject), ..Self::of_call(rule, at, message) }
    }

    /// One that is not about an object.
    pub(super) fn of_call(rule: &'static Rule, at: Place, message: String) -> Self {
        Self {
            rule,
            severity: rule.severity,
            at,
            other: None,
            subject: None,
            size: None,
            fingerprint: None,
            count: 1,
            message,
            advice: String::new(),
            answer: None,
        }
    }

    /// The documented result of a call that violations in this way.
    pub(super) fn answer(self, code: u32) -> Self {
        Self { answer: Some(UrResult(code)), ..self }
    }

    pub(super) fn other(self, other: Option<Place>) -> Self {
        Self { other, ..self }
    }

    pub(super) fn values(self, size: Option<u64>, fingerprint: Option<u64>) -> Self {
        Self { size, fingerprint, ..self }
    }

    pub(super) fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }

    pub(super) fn at_most(self, severity: Severity) -> Self {
        Self { severity: self.severity.min(severity), ..self }
    }
}

/// `UR_RESULT_ERROR_INVALID_ARGUMENT`: what is answered to a put or close of something that cannot be put or closed.
pub(super) const INVALID_ARGUMENT: u32 = 45;

/// `UR_RESULT_ERROR_INVALID_VALUE`: what is answered to handle data whose size is not that of its kind.
pub(super) const INVALID_VALUE: u32 = 4;

/// `UR_RESULT_ERROR_INVALID_EVENT`: what is answered to a get of an event that cannot be shared.
pub(super) const INVALID_EVENT: u32 = 12;

/// `UR_RESULT_ERROR_INVALID_MEM_OBJECT`: what `urUSMFree` answers to a pointer that is no USM.
pub(super) const INVALID_MEM_OBJECT: u32 = 11;

impl Fact<'_> {
    /// The process that acts.
    pub(super) fn actor(&self) -> String {
        name(self.tracker, self.at.process)
    }

    /// Another place, with its process if that is another one.
    pub(super) fn place(&self, place: Place) -> String {
        let call = call(place);
        if place.process == self.at.process { call } else { format!("{call} of {}", name(self.tracker, place.process)) }
    }
}

/// `producer (pid 42)`
pub(super) fn name(tracker: &Tracker, who: ProcessId) -> String {
    let Some(process) = tracker.process(who) else { return "an unknown process".into() };
    let file = process.executable.rsplit('/').next().unwrap_or_default();
    let file: String = file.chars().map(|c| if c.is_control() { '?' } else { c }).take(64).collect();
    if file.is_empty() { format!("pid {}", process.pid) } else { format!("{file} (pid {})", process.pid) }
}

/// `call 17 (urIPCGetMemHandleExp, thread 42)`
pub(super) fn call(place: Place) -> String {
    let function = place.function.map_or("", |function| function.name());
    match place.call {
        Some(call) => format!("call {call} ({function}, thread {})", place.tid),
        None => "its end".into(),
    }
}

/// ` of 4096 bytes`, or nothing.
pub(super) fn of_size(size: Option<u64>) -> String {
    size.map_or_else(String::new, |size| format!(" of {size} bytes"))
}

/// `once`, `2 times`
pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// `1 handle`, `2 handles`
pub(super) fn number(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// An opened object that was left: its finding, but for the advice. It stands at the open; the context's release is named.
pub(super) fn left_object(rule: &'static Rule, fact: &Fact<'_>, what: Handle, object: &Object, how: Left) -> Finding {
    let (who, size, (end, most)) = (fact.actor(), of_size(object.size), left(how));
    let ends = if what.kind == Kind::Event { "released" } else { "closed or released" };
    let released = if how == Left::ContextReleased { format!(" in {}", call(fact.at)) } else { String::new() };
    let from =
        object.source.map_or_else(String::new, |source| format!("; its handle data came from {}", fact.place(source)));
    let references = match object.references {
        1 => String::new(),
        more => format!(", with {} left", number(more, "reference")),
    };
    let opened = call(object.born);
    let message =
        format!("{who} opened {what}{size} in {opened} and never {ends} it{references}; {end}{released}{from}");
    Finding::new(rule, object.born, what, message)
        .other(object.source)
        .values(object.size, object.fingerprint)
        .at_most(most)
}

/// An open of handle data that is worth nothing any more: its finding, but for the advice and the other place.
pub(super) fn stale(rule: &'static Rule, fact: &Fact<'_>, old: &Stale, opened: Opened, why: &str) -> Finding {
    let (who, what, at) = (fact.actor(), old.handle, call(fact.at));
    let became = match opened {
        Opened::Well => "was let, by luck".into(),
        Opened::Not(result) => format!("was answered {result}"),
    };
    let message = format!("{who} opens {what} in {at} and {became}: {why}");
    Finding::new(rule, fact.at, what, message).values(old.size, Some(old.fingerprint))
}

/// A handle by its kind and value.
pub(super) fn handle(kind: Kind, value: u64) -> Handle {
    Handle { kind, value }
}

/// How it came that something is left: the second half of a sentence, and how bad it can be at most.
pub(super) fn left(left: Left) -> (&'static str, Severity) {
    match left {
        Left::Exited => ("the process has exited", Severity::Error),
        Left::Killed => ("the process was killed before it could", Severity::Note),
        Left::Incomplete => ("its trace is incomplete", Severity::Note),
        Left::ContextReleased => ("its context was released without it", Severity::Error),
    }
}
