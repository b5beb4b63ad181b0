//! The wording that findings share: lower case, no final stop, with the values and both places.

use std::num::NonZeroU64;

use urscope_schema::handle::{Handle, Kind};
use urscope_schema::{api::ResultCode, call::Nanos, counted, enumerated, host::ranks::process_name, size};

use crate::finding::{Finding, Place, Severity};
use crate::rule::Rule;
use crate::tracker::fact::{DanglingUse, DeadAccess, Expired, Fact, InUse, Leftover, Outcome, Reason};
use crate::tracker::{ProcessId, Tracker, records::Object};

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

/// `producer (pid 42)`, `rank 3 (pid 42)`
pub(super) fn name(tracker: &Tracker, who: ProcessId) -> String {
    let Some(process) = tracker.process(who) else { return "an unknown process".into() };
    let file = process.executable.rsplit('/').next().unwrap_or_default();
    let file: String = file.chars().map(|c| if c.is_control() { '?' } else { c }).take(64).collect();
    process_name(&file, process.pid, process.rank)
}

/// A device of a process: `device 0 (Software Device)`; with its handle if its index or its name is not known.
pub(super) fn device(tracker: &Tracker, who: ProcessId, handle: u64) -> String {
    let Some(known) = tracker.state(who).and_then(|state| state.devices.get(&handle)) else {
        return format!("device {handle:#x}");
    };
    let name: String = known.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match (known.index, name.trim()) {
        (Some(index), "") => format!("device {index} {handle:#x}"),
        (Some(index), name) => format!("device {index} ({name})"),
        (None, "") => format!("device {handle:#x}"),
        (None, name) => format!("device {handle:#x} ({name})"),
    }
}

/// Two devices of a process in one message: with their handles, too, if they look the same. Each
/// platform counts its devices from 0 on.
pub(super) fn two_devices(tracker: &Tracker, who: ProcessId, handles: [u64; 2]) -> [String; 2] {
    let [one, other] = handles.map(|handle| device(tracker, who, handle));
    if one != other {
        return [one, other];
    }
    [(one, handles[0]), (other, handles[1])].map(|(text, handle)| format!("{text} at {handle:#x}"))
}

/// `call 17 (urIPCGetMemHandleExp, thread 42)`
pub(super) fn call(place: Place) -> String {
    let function = place.function.map_or("", |function| function.name());
    match place.call {
        Some(call) => format!("call {call} ({function}, thread {})", place.tid),
        None => "its end".into(),
    }
}

/// `a memory handle`, `an event handle`
pub(super) fn one(kind: Kind) -> String {
    let noun = kind.noun();
    format!("{} {noun}", if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" })
}

/// ` of 4 KiB (4,096 bytes)`, or nothing.
pub(super) fn of_size(bytes: Option<u64>) -> String {
    bytes.map_or_else(String::new, |bytes| format!(" of {}", size(bytes)))
}

/// The finding about a command that accesses memory which was `ended`, without the advice.
pub(super) fn dead_access(rule: &'static Rule, fact: &Fact<'_>, access: &DeadAccess, ended: &str) -> Finding {
    let DanglingUse { pointer, was, died, size, fingerprint } = access.used;
    let who = fact.actor();
    let at = call(fact.at);
    let does = if access.writes { "writes to" } else { "reads" };
    let of = of_size(size);
    let ended_in = call(died);
    let mut command = format!("{who} {does} {pointer:#x} in {at}");
    if access.is_executed {
        let appended = access.appended.map_or_else(|| "before".into(), |append| format!("in {}", call(append)));
        command = format!("{who} executes a command in {at} that {does} {pointer:#x}, appended {appended}");
    }
    let all = opens_and_closes(fact, was).unwrap_or_default();
    let message = format!("{command}: it was in {was}{of}, {ended} in {ended_in}{all}");
    Finding::new(rule, fact.at, was, message).other(access.appended.or(Some(died))).values(size, fingerprint)
}

/// The opens and closes of a mapping of this process that has ended, if it was opened more than once:
/// `; it was opened in calls 2 and 3, and closed in calls 5 and 6`
pub(super) fn opens_and_closes(fact: &Fact<'_>, mapping: Handle) -> Option<String> {
    let counted = fact.tracker.state(fact.at.process)?.tombstones.counted(mapping)?;
    let all = counted.opens.iter().chain(&counted.closes);
    let is_of_one_thread = all.clone().all(|place| all.clone().all(|other| place.tid == other.tid));
    let one = |place: &Place| {
        let number = place.call.map_or(0, NonZeroU64::get);
        if is_of_one_thread { number.to_string() } else { format!("{number} (thread {})", place.tid) }
    };
    let several = |places: &[Place]| {
        let words: Vec<String> = places.iter().map(one).collect();
        format!("{} {}", if words.len() == 1 { "call" } else { "calls" }, enumerated(&words))
    };
    Some(format!("; it was opened in {}, and closed in {}", several(&counted.opens), several(&counted.closes)))
}

/// `once`, `2 times`
pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// The finding about an opened object that was not released, without the advice. Its place is the open.
pub(super) fn left_object(
    rule: &'static Rule,
    fact: &Fact<'_>,
    what: Handle,
    object: &Object,
    how: Leftover,
) -> Finding {
    let who = fact.actor();
    let size = of_size(object.size);
    let (end, most) = left(how);
    let ends = match what.kind {
        Kind::Event => "released",
        Kind::EventPool => "closed",
        _ => "closed or released",
    };
    let from =
        object.source.map_or_else(String::new, |source| format!("; its handle data came from {}", fact.place(source)));
    let references = match object.references {
        1 => String::new(),
        more => format!(", with {} left", counted(more, "reference")),
    };
    let opened = call(object.born);
    let message = format!("{who} opened {what}{size} in {opened} and never {ends} it{references}; {end}{from}");
    Finding::new(rule, object.born, what, message)
        .other(object.source)
        .values(object.size, object.fingerprint)
        .at_most(most)
}

/// The finding about an open of expired handle data, without the advice and the other place.
pub(super) fn expired(rule: &'static Rule, fact: &Fact<'_>, old: &Expired, outcome: Outcome, why: &str) -> Finding {
    let who = fact.actor();
    let what = old.handle;
    let at = call(fact.at);
    let message = format!("{who} opens {what} in {at}, {}: {why}", which(fact.at, outcome));
    Finding::new(rule, fact.at, what, message).values(old.size, Some(old.fingerprint))
}

/// `which returned UR_RESULT_ERROR_INVALID_VALUE`: the result of a call that should have failed.
pub(super) fn which(at: Place, outcome: Outcome) -> String {
    match outcome {
        Outcome::Succeeded => format!("which {} accepted", at.words().callee),
        Outcome::Refused(result) if result.is_success() => "which returned success and no result".into(),
        Outcome::Refused(result) => format!("which returned {}", result_text(at, result)),
    }
}

/// The result of a call, by its name and number.
pub(super) fn result_text(at: Place, result: ResultCode) -> String {
    at.function.map_or_else(String::new, |function| result.text_of(function))
}

/// Why a process that was forked is not initialized, and what to do: its parent has used the interface before, and what
/// it has set up does not work in a child. `None` where a result says something else.
pub(super) fn used_before_fork(fact: &Fact<'_>, result: ResultCode) -> Option<(String, String)> {
    if fact.at.meaning(result) != ResultCode::UNINITIALIZED {
        return None;
    }
    let parent = fact.tracker.process(fact.at.process)?.forked_from?;
    let state = fact.tracker.state(parent)?;
    let was_used = state.ipc_calls > 0 || state.allocations.iter().next().is_some() || !state.contexts.is_empty();
    let why = format!(
        "{} had used {} before it forked this process, where nothing of that works",
        name(fact.tracker, parent),
        fact.at.words().callee
    );
    let advice = "fork before the first use, or start the child as a new program (exec; `spawn` in Python)".into();
    was_used.then_some((why, advice))
}

/// A handle by its kind and value.
pub(super) fn handle(kind: Kind, value: u64) -> Handle {
    Handle { kind, value }
}

/// Why something is left over: the second half of a sentence, and the highest severity that it allows.
pub(super) fn left(left: Leftover) -> (String, Severity) {
    let (end, most) = match left.reason {
        Reason::Exited => ("the process has exited", Severity::Error),
        Reason::Exec => ("the process has become another program", Severity::Error),
        Reason::Killed => ("the process was killed before it could do so", Severity::Note),
        Reason::Incomplete => ("its trace is incomplete", Severity::Note),
    };
    let released = left.released.map(|released| format!(", and its context was released in {}", call(released)));
    (format!("{end}{}", released.unwrap_or_default()), most)
}

/// `, 51 per second`: the rate of `more` events between these times. Empty if no time passed.
pub(super) fn rate(more: u64, from: Nanos, to: Nanos) -> String {
    let seconds = to.0.saturating_sub(from.0) as f64 / 1e9;
    if seconds > 0.0 { format!(", {:.0} per second", more as f64 / seconds) } else { String::new() }
}

/// The note of a finding that stands for many, or for what grows: `; it is one of 300 that were left by such calls, 51
/// per second`.
pub(super) fn among(left: Leftover, count: u64, last: Place, grows: bool) -> String {
    if count == 1 && !grows {
        return String::new();
    }
    let rate = rate(left.index as u64, left.since, last.time);
    format!("; it is one of {} that calls from the same place in the program have left{rate}", left.count)
}

/// A finding about memory that ends while commands may access it.
pub(super) fn in_use(rule: &'static Rule, fact: &Fact<'_>, in_use: &InUse, ends: &str) -> Finding {
    let InUse { memory, size, fingerprint, command, unfinished } = *in_use;
    let who = fact.actor();
    let at = call(fact.at);
    let (state, most) = match (command, unfinished) {
        (Some(command), Some(_)) => {
            (format!("a command that accesses it has not completed: {}", call(command)), Severity::Error)
        }
        (None, Some(offset)) => (
            format!(
                "a command that accesses it from byte {offset} on, or a kernel that has a pointer there, has not completed"
            ),
            Severity::Error,
        ),
        (command, None) => {
            let command = command.map_or_else(String::new, call);
            (
                format!("{command} may access it: the host has not waited for it; not proved to have completed"),
                Severity::Note,
            )
        }
    };
    let message = format!("{who} {ends} {memory}{} in {at} while {state}", of_size(size));
    Finding::new(rule, fact.at, memory, message).other(command).values(size, fingerprint).at_most(most)
}
