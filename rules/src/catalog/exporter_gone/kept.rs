//! What processes keep of memory whose owners have ended: since when, until when, and whether that is proved.

use std::collections::{BTreeMap, BTreeSet};

use urscope_schema::{call::Nanos, counted, duration, size};

use super::{EndedMemory, Holder, RULE, advice};
use crate::catalog::wording::{call, name, of_size};
use crate::finding::{Finding, Place, Severity};
use crate::tracker::{End, ProcessId, Tracker};

/// How long after a kill a process may keep the memory: it has to notice the kill first.
const GRACE: Nanos = Nanos(1_000_000_000);

/// From how many bytes on it is a warning that memory is kept from process to process.
const MIN_BYTES: u64 = 64 << 20;

/// Of how many processes, one after the other.
const MIN_GENERATIONS: usize = 3;

/// For how long it must be kept, where it is closed at all.
const MIN_TIME: Nanos = Nanos(60_000_000_000);

/// A mapping that is open after the end of its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The index of its memory.
    pub(super) memory: usize,
    pub(super) opened: Place,
    pub(super) pointer: u64,
    /// When its owner had ended, at the latest. `None` if nobody has observed it.
    ended: Option<Nanos>,
    until: Until,
    pub(super) doubt: Option<Doubt>,
}

/// Until when a mapping is kept.
#[derive(Clone, Copy, Debug)]
enum Until {
    Closed(Nanos),
    /// The process that has it open ended.
    Ended(Nanos),
    /// The process still runs, and this is its last record.
    Still(Option<Nanos>),
}

/// Why it is not proved that a mapping was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It may have been closed before the owner ended.
    Closed,
    /// The process that had it open may have ended before the owner.
    Ended,
}

impl Kept {
    /// All mappings that are kept, in the order of their memory.
    pub(super) fn of_all(tracker: &Tracker, all: &[EndedMemory]) -> Vec<Self> {
        let of_memory = |(index, memory): (usize, &EndedMemory)| {
            let kept = |holder: &Holder| Self::from_holder(tracker, index, memory, holder);
            memory.holders.iter().filter_map(kept).collect::<Vec<_>>()
        };
        all.iter().enumerate().flat_map(of_memory).collect()
    }

    /// A mapping, if it is open after the end of its owner.
    fn from_holder(tracker: &Tracker, index: usize, memory: &EndedMemory, holder: &Holder) -> Option<Self> {
        let owner = tracker.state(memory.at.process)?;
        let process = tracker.state(holder.opened.process)?;
        let exited = memory.how == End::Exited;
        let observed = owner.observed.filter(|_| !exited);
        // An open shows that the owner was there, even if others that ended then were seen earlier.
        let gone = observed.map(|(_, gone)| gone.max(holder.opened.time));
        let ended = if exited { Some(memory.at.time) } else { gone };
        if holder.is_excused || (ended.is_none() && holder.opened.time > memory.at.time) {
            return None;
        }
        let was_killed = memory.how == End::Killed && ended.is_some();
        let from = ended.unwrap_or(memory.at.time);
        let in_time = |time: Nanos| was_killed && time.0 <= from.0.saturating_add(GRACE.0);
        let seen_alive = |ended: Nanos| process.observed.map_or(ended, |(alive, _)| ended.max(alive));
        let (until, doubt) = match (holder.closed, process.ended) {
            (Some(closed), _) if closed <= from || in_time(closed) => return None,
            (Some(closed), _) => (Until::Closed(closed), ended.is_none().then_some(Doubt::Closed)),
            (None, None) => (Until::Still(None), None),
            (None, Some((End::Running, last))) => (Until::Still(Some(last)), None),
            (None, Some((End::Exited, end))) if end > from || exited => (Until::Ended(end), None),
            // Which of the two ended first was not observed.
            (None, Some((End::Exited, end))) if observed.is_some_and(|(alive, _)| alive < end) => {
                (Until::Ended(end), Some(Doubt::Ended))
            }
            (None, Some((End::Exited, _))) => return None,
            (None, Some((how, end))) => {
                let end = seen_alive(end);
                let is_late = end > from && (how == End::Exec || !in_time(end));
                (is_late || exited).then_some((Until::Ended(end), None))?
            }
        };
        let opened = holder.opened;
        let pointer = holder.pointer;
        Some(Self { memory: index, opened, pointer, ended, until, doubt })
    }

    /// How long it was kept, in nanoseconds; `None` if that is not known.
    fn duration(&self) -> Option<u64> {
        let (Until::Closed(until) | Until::Ended(until) | Until::Still(Some(until))) = self.until else { return None };
        let ended = self.ended.filter(|_| self.doubt.is_none())?;
        Some(until.0.saturating_sub(ended.0))
    }

    /// `, and closes it 55.4 ms later`
    pub(super) fn until(&self) -> String {
        let later = self.duration().map_or_else(String::new, |took| format!(" {} later", duration(took)));
        match (self.until, self.doubt) {
            (_, Some(Doubt::Closed)) => "; not proved, because it may have been closed by then".into(),
            (_, Some(Doubt::Ended)) => "; not proved, because that process may have ended before".into(),
            (Until::Closed(_), None) => format!(", and closes it{later}"),
            (Until::Ended(_), None) if later.is_empty() => ", and never closes it".into(),
            (Until::Ended(_), None) => format!(", and keeps it to its own end,{later}"),
            (Until::Still(_), None) => format!(", and still has it open{later}"),
        }
    }

    /// Whether it is kept to the end of the process that has it open, or for long.
    fn is_long(&self) -> bool {
        !matches!(self.until, Until::Closed(_)) || self.duration().is_some_and(|took| took >= MIN_TIME.0)
    }
}

/// The findings about processes that keep memory of several ended ones, and what other processes keep.
pub(super) fn of_several(tracker: &Tracker, all: &[EndedMemory], kept: Vec<Kept>) -> (Vec<Finding>, Vec<Kept>) {
    let mut by_process: BTreeMap<ProcessId, Vec<Kept>> = BTreeMap::new();
    for kept in kept {
        by_process.entry(kept.opened.process).or_default().push(kept);
    }
    let mut found = Vec::new();
    let mut others = Vec::new();
    for (who, kept) in by_process {
        let owners: BTreeSet<_> = kept.iter().filter_map(|it| Some(all.get(it.memory)?.at.process)).collect();
        match (owners.len(), kept.iter().min_by_key(|kept| kept.opened.time)) {
            (2.., Some(first)) => found.extend(report(tracker, all, who, owners.len(), &kept, first)),
            _ => others.extend(kept),
        }
    }
    others.sort_by_key(|kept| kept.memory);
    (found, others)
}

/// The bytes of all this memory.
fn bytes(all: &[EndedMemory], kept: &[Kept]) -> u64 {
    let memory: BTreeSet<_> = kept.iter().map(|kept| kept.memory).collect();
    memory.into_iter().filter_map(|index| all.get(index)?.size).fold(0, u64::saturating_add)
}

/// The number of processes of which memory is kept one after the other: that of the next one was opened after the one
/// before had ended. The last one may have ended at any time.
fn generations(all: &[EndedMemory], who: ProcessId, kept: &[Kept]) -> usize {
    let mut ends: Vec<_> = kept.iter().filter_map(|kept| Some((kept.ended?, kept.opened.time))).collect();
    ends.sort_unstable();
    let mut count = 0;
    let mut latest = None;
    for (ended, opened) in ends {
        if latest.is_none_or(|latest| opened > latest) {
            (count, latest) = (count + 1, Some(ended));
        }
    }
    let opens = all.iter().flat_map(|memory| &memory.holders).filter(|holder| holder.opened.process == who);
    let goes_on = latest.is_some_and(|latest| opens.map(|holder| holder.opened.time).any(|opened| opened > latest));
    count + usize::from(goes_on)
}

fn report(
    tracker: &Tracker,
    all: &[EndedMemory],
    who: ProcessId,
    owners: usize,
    kept: &[Kept],
    first: &Kept,
) -> Option<Finding> {
    let memory = all.get(first.memory)?;
    let proved: Vec<Kept> = kept.iter().copied().filter(|kept| kept.doubt.is_none() && kept.is_long()).collect();
    let generations = generations(all, who, &proved);
    let grows = generations >= MIN_GENERATIONS && bytes(all, &proved) >= MIN_BYTES;
    let growth = if grows {
        format!(
            "; this grows from process to process: the memory of {generations} of them was opened one after the other, each time after the process before had ended"
        )
    } else {
        String::new()
    };
    let longest = kept.iter().filter_map(Kept::duration).max();
    let longest = longest.map_or_else(String::new, |took| format!(", for up to {} after their ends", duration(took)));
    let end = match memory.how {
        End::Killed => "was killed",
        End::Exec => "became another program",
        _ => "exited",
    };
    let who = name(tracker, who);
    let message = format!(
        "{who} keeps {} of {owners} ended processes open, in {}{longest}: the first is {}{} of {}, which {end}; {who} \
         opened it as {:#x} in {}{}{growth}",
        size(bytes(all, kept)),
        counted(kept.len() as u64, "mapping"),
        memory.what,
        of_size(memory.size),
        name(tracker, memory.at.process),
        first.pointer,
        call(first.opened),
        first.until(),
    );
    let advice = advice(if grows { End::Killed } else { memory.how });
    let finding = Finding::new(&RULE, memory.at, memory.what, message).other(Some(first.opened));
    let finding = finding.values(memory.size, Some(memory.fingerprint)).advice(advice);
    Some(if grows { finding } else { finding.at_most(Severity::Note) })
}
