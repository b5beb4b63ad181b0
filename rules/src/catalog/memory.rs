//! What rules with state share: one entry per process, and a bound on how many left objects are reported one by one.

use std::num::NonZeroU64;

use urscope_schema::{api::ResultCode, call::Nanos, handle::fingerprint};

use super::wording::{call, name};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::fact::{Altered, Fact, Leftover, Outcome, UnknownHandle, What};
use crate::tracker::{End, ProcessId, Tracker};

/// The number of handles that are not put from which on they count as growth, not as forgotten handles.
pub(super) const MANY_HANDLES: u64 = 256;

/// The most that a finding about handles which a process has not put can be at its end; `None` where it goes on.
pub(super) fn not_put(end: End) -> Option<Severity> {
    match end {
        End::Exited | End::Exec => Some(Severity::Error),
        End::Killed | End::Incomplete => Some(Severity::Note),
        End::Running => None,
    }
}

/// One value of each process, found by its number.
#[derive(Clone, Debug)]
pub(super) struct PerProcess<T>(Vec<Option<T>>);

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerProcess<T> {
    /// The value of a process, made by `new` if there is none.
    pub(super) fn get_or_insert_with(&mut self, who: ProcessId, new: impl FnOnce() -> T) -> &mut T {
        let index = who.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        #[expect(clippy::indexing_slicing, reason = "it was made long enough just above")]
        self.0[index].get_or_insert_with(new)
    }

    /// The value of a process, if there is one.
    pub(super) fn get_mut(&mut self, who: ProcessId) -> Option<&mut T> {
        self.0.get_mut(who.0 as usize)?.as_mut()
    }

    /// Takes the value of a process out.
    pub(super) fn take(&mut self, who: ProcessId) -> Option<T> {
        self.0.get_mut(who.0 as usize)?.take()
    }

    /// All values, in the order of processes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

/// The first of several things that are reported together, and how many there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstOf<T> {
    pub(super) first: T,
    pub(super) count: u64,
}

impl<T> PerProcess<FirstOf<T>> {
    /// Counts one more of a process.
    pub(super) fn count(&mut self, who: ProcessId, one: impl FnOnce() -> T) {
        self.get_or_insert_with(who, || FirstOf { first: one(), count: 0 }).count += 1;
    }
}

/// Opens of bytes that no traced get returned, by process.
#[derive(Clone, Debug, Default)]
pub(super) struct UnknownOpens {
    opens: PerProcess<FirstOf<(Place, UnknownHandle)>>,
    calls_missing: bool,
}

impl UnknownOpens {
    /// Counts one more open.
    pub(super) fn count(&mut self, at: Place, unknown: UnknownHandle) {
        self.opens.count(at.process, || (at, unknown));
    }

    /// All of them at the end of the run, otherwise none. None, too, if calls are missing or exports are
    /// forgotten, because a get may have returned the bytes.
    pub(super) fn at_end(&mut self, fact: &Fact<'_>) -> impl Iterator<Item = &FirstOf<(Place, UnknownHandle)>> {
        self.calls_missing |= matches!(fact.what, What::CallsMissing(_));
        let known = matches!(fact.what, What::Finished) && !self.calls_missing && !fact.tracker.has_forgotten();
        self.opens.iter().filter(move |_| known)
    }
}

/// Whether bytes are certainly not what a get returned, which has a rule of its own.
pub(super) fn is_damaged(unknown: &UnknownHandle) -> bool {
    unknown.altered.is_some_and(|altered| !is_by_adapter(unknown, &altered)) || is_all_zero(unknown)
}

/// Whether the v1 adapter may have made a difference when it opened the bytes at this address before: it writes a
/// descriptor of its own into bytes 44 to 47 of its 108. Only where urscope gives it no copy, as through XPTI.
fn is_by_adapter(unknown: &UnknownHandle, altered: &Altered) -> bool {
    let is_in_descriptor = altered.first >= 44 && altered.first + altered.length <= 48;
    unknown.overwritten && unknown.size == Some(108) && is_in_descriptor
}

/// Whether an open with this outcome has succeeded, or may have been refused because of the bytes.
pub(super) fn is_for_bytes(at: Place, outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Refused(result) if !depends_on_bytes(at.meaning(result)))
}

/// Whether an open that is refused with this result may be refused because of the bytes.
pub(super) fn depends_on_bytes(result: ResultCode) -> bool {
    !matches!(
        result,
        ResultCode::UNINITIALIZED
            | ResultCode::OUT_OF_HOST_MEMORY
            | ResultCode::OUT_OF_RESOURCES
            | ResultCode::UNSUPPORTED_FEATURE
            | ResultCode::INVALID_NULL_HANDLE
            | ResultCode::INVALID_NULL_POINTER
    )
}

/// Whether unknown bytes are all zero. Fewer than 16 are the beginning of handle data that was cut off; handles that
/// are passed by value have 64.
pub(super) fn is_all_zero(unknown: &UnknownHandle) -> bool {
    let zeros =
        |size: u64| Some(fingerprint([0; 256].get(..usize::try_from(size).ok()?).filter(|all| all.len() >= 16)?));
    zeros(unknown.size.unwrap_or(64)) == Some(unknown.fingerprint)
}

/// The get of the memory that unknown bytes name, and how they differ from what it returned, in words.
pub(super) fn changed(tracker: &Tracker, unknown: &FirstOf<(Place, UnknownHandle)>) -> Option<(Place, String)> {
    let (at, unknown) = &unknown.first;
    let export = tracker.named_export(at.process, unknown.named)?;
    let who = name(tracker, export.producer);
    let text = format!(
        "; the bytes name {:#x} of {who}, whose handle data, got in {}, has other bytes: they were changed on their way",
        export.subject.value?,
        call(export.latest_get)
    );
    Some((export.latest_get, text))
}

/// The two gets of which one has returned unknown bytes, in words.
pub(super) fn either(tracker: &Tracker, unknown: &UnknownHandle) -> Option<String> {
    let [one, other] = unknown.one_of?.map(|got| format!("what {} got in {}", name(tracker, got.process), call(got)));
    Some(format!("that is one of these, {one}, or {other}: its bytes do not say which"))
}

/// The number of leftovers of a kind that are reported one by one when a process ends. The last one
/// stands for all others.
const MAX_REPORTED: usize = 256;

/// The number of leftovers that a finding stands for; `None` if it is not reported.
pub(super) fn stands_for(left: Leftover) -> Option<u64> {
    if left.excused || left.index >= MAX_REPORTED {
        return None;
    }
    let last = left.index + 1 == MAX_REPORTED;
    Some(if last { (left.count - left.index) as u64 } else { 1 })
}

/// Whether this is the last reported one of leftovers of a place in the program that grew until the process ended at
/// that time: more than [`MAX_REPORTED`], or at least 16 with 1 GiB that were made over at least ten seconds. What was
/// made within the first quarter of the time is a cache that was filled once.
pub(super) fn grows(left: Leftover, end: Nanos) -> bool {
    let [took, whole] = [left.until, end].map(|time| time.0.saturating_sub(left.since.0));
    let is_large = left.count >= 16 && left.bytes >= 1 << 30 && took >= 10_000_000_000;
    let is_last = left.index + 1 == left.count.min(MAX_REPORTED);
    is_last && took >= whole / 4 && (left.count > MAX_REPORTED || is_large)
}

/// The finding about one of several leftovers.
pub(super) fn one_of(left: Leftover, finding: impl FnOnce() -> Finding) -> Option<Finding> {
    let count = stands_for(left)?;
    Some(Finding { count, ..finding() })
}

/// The order of places: by time, then by process and call.
pub(super) const fn order(at: &Place) -> (Nanos, ProcessId, Option<NonZeroU64>) {
    (at.time, at.process, at.call)
}
