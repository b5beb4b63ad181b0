//! Opens of handle data: the export of the bytes, and the object that is returned.

use urscope_schema::handle::{Handle, Kind, descriptor_in};
use urscope_schema::operation::{Open, Returned};

use super::{mappings, objects};
use crate::place::{Place, ProcessId};
use crate::tracker::observations::{Altered, Expired, Expiry};
use crate::tracker::pending::{PendingChange, PendingOpen};
use crate::tracker::{
    changes::Change,
    exports::{Overwriting, Subject},
    records::ExportId,
    state::Tracker,
};

/// The number of addresses of handle data that are remembered for a process.
const MAX_OPENED_AT: usize = 1 << 16;

/// The number of changed handle data that are remembered for a process.
const MAX_ALTERED: usize = 1 << 10;

/// An open begins: finds the export of its bytes, and whether they have expired.
///
/// An import of a descriptor is an open, too, but the descriptor holds the memory: nothing of it expires. One of bytes
/// is like any open.
pub(super) fn open(tracker: &mut Tracker, who: ProcessId, open: &Open) -> PendingChange {
    let of_this_kind = |id: &ExportId| tracker.exports.get(*id).is_some_and(|found| found.subject.kind == open.of);
    let export = tracker.export_of(who, open.fingerprint).filter(of_this_kind);
    // One of them is opened.
    for fingerprint in open.one_of.into_iter().flatten() {
        if let Some(id) = tracker.export_of(who, Some(fingerprint)) {
            tracker.exports.attempt(id, who);
        }
    }
    let holds = open.imports && open.data.is_some_and(|data| descriptor_in(data).is_some());
    let expired = export.filter(|_| !holds).and_then(|id| expired(tracker, id, open.data)).map(Box::new);
    if let Some(id) = export {
        tracker.exports.attempt(id, who);
        if let (Some(state), Some(data)) = (tracker.state_mut(who), open.data.filter(|_| !open.imports))
            && state.opened_at.len() < MAX_OPENED_AT
        {
            state.opened_at.insert(data, id);
        }
    }
    let altered = if export.is_none() { altered(tracker, who, open).map(Box::new) } else { None };
    let got = export.and_then(|id| tracker.exports.get(id)).map(|export| export.latest_get);
    PendingChange::Open(PendingOpen { export, got, expired, altered })
}

/// What unknown bytes were before they were changed. Their checksum is recorded once in a thread.
fn altered(tracker: &mut Tracker, who: ProcessId, open: &Open) -> Option<Altered> {
    let fingerprint = open.fingerprint?;
    if let Some(altered) = tracker.altered(who, open)
        && let Some(state) = tracker.state_mut(who)
        && state.altered.len() < MAX_ALTERED
    {
        state.altered.insert(fingerprint, altered);
    }
    tracker.state(who)?.altered.get(&fingerprint).copied()
}

fn expired(tracker: &Tracker, id: ExportId, data: Option<u64>) -> Option<Expired> {
    let found = tracker.exports.get(id)?;
    let reason = match tracker.exports.freed(id) {
        None => Expiry::Put(tracker.exports.over(id)?),
        Some(freed) => {
            let producer = tracker.state(found.latest_get.process).zip(found.subject.value);
            let now = producer.and_then(|(state, pointer)| state.allocation_at(pointer));
            now.map_or(Expiry::Freed(freed), |(_, new)| Expiry::Replaced(freed, new.born))
        }
    };
    let handle = Handle { kind: found.subject.kind, value: data.unwrap_or_default() };
    let Subject { value, size, .. } = found.subject;
    Some(Expired { handle, got: found.latest_get, reason, value, size, fingerprint: found.fingerprint() })
}

/// An open returns.
pub(super) fn returned(
    tracker: &mut Tracker,
    place: Place,
    open: &Open,
    pending: &PendingOpen,
    made: Option<u64>,
    exit: &Returned,
) -> Option<Change> {
    let answer = &exit.answer;
    let export = pending.export;
    if let Some((export, byte)) = export.zip(answer.overwritten) {
        tracker.exports.overwrite(export, Overwriting { opened: place, returned: exit.time, byte, again: false });
    }
    let value = made?;
    Some(match open.makes {
        Kind::Mapping => mappings::opened(tracker, place, value, answer.extent, open, pending),
        kind => objects::imported(tracker, place, Handle { kind, value }, open, export),
    })
}
