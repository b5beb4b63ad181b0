//! The facts of a process that ends: what is left in it, in the order in which it was made.

use urscope_schema::{
    api::Function,
    call::Nanos,
    handle::{Handle, Kind},
};

use super::{
    End, ProcessId, Tracker, end_of,
    fact::{FactConsumer, Left, Reason, What},
    hash::Map,
    kept::KeptPlace,
    process_state::ProcessState,
    records::{HandleData, Mapping, Object, Origin},
};
use crate::{finding::Place, lifecycle::State};

impl Tracker {
    /// What a process would leave if it ended like that now. Nothing moves, and nothing is allocated where nothing is left.
    pub fn facts_of_end(&self, who: ProcessId, how: End, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(who).filter(|state| state.ended.is_none()) else { return };
        let place = end_of(who, at);
        self.emit(facts, place, What::ProcessEnded(how));
        let reason = match how {
            End::Exited => Reason::Exited,
            End::Exec => Reason::Exec,
            End::Killed => Reason::Killed,
            End::Incomplete => Reason::Incomplete,
            End::Running => return,
        };
        let handles = state.handles.iter().filter(|(_, data)| data.state == State::Alive);
        let mappings = state.mappings.iter().filter(|(_, mapping)| mapping.state == State::Alive);
        let objects = state.seldom.objects.iter();
        let objects = objects.filter(|(_, object)| object.origin == Origin::Imported && object.state == State::Alive);
        let left = Leftovers {
            handles: handles.map(|(handle, data)| (handle, data, is_excused(state, handle, data))).collect(),
            mappings: mappings.collect(),
            objects: objects.collect(),
        };
        self.facts_of_left(place, reason, left, facts);
        if how == End::Incomplete {
            self.emit(facts, place, What::CallsMissing(state.seldom.missing));
        }
    }

    pub(super) fn facts_of_left(
        &self,
        at: Place,
        reason: Reason,
        mut left: Leftovers<'_>,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        left.handles.sort_unstable_by_key(|(_, data, _)| data.serial);
        let mut places =
            Places::of(reason, left.handles.iter().map(|(_, data, excused)| (data.born.place(), *excused)));
        for (handle, data, excused) in left.handles {
            let how = places.next(data.born.place(), excused, data.context_released.map(KeptPlace::place));
            self.emit(facts, at, What::LeftHandle(how, handle, data));
        }
        left.mappings.sort_unstable_by_key(|(_, mapping)| mapping.serial);
        let opened = |mapping: &Mapping| mapping.last_open().unwrap_or(at);
        let mut places =
            Places::of(reason, left.mappings.iter().map(|(_, mapping)| (opened(mapping), mapping.ended_wrongly)));
        for (pointer, mapping) in left.mappings {
            let released = mapping.opens.iter().rev().find_map(|open| open.context_released);
            let how = places.next(opened(mapping), mapping.ended_wrongly, released.map(KeptPlace::place));
            self.emit(facts, at, What::LeftMapping(how, pointer, mapping));
        }
        left.objects.sort_unstable_by_key(|(_, object)| object.serial);
        let mut places = Places::of(reason, left.objects.iter().map(|(_, object)| (object.born, object.ended_wrongly)));
        for kind in [Kind::PhysicalMem, Kind::Event, Kind::EventPool] {
            for (handle, object) in left.objects.iter().filter(|(handle, _)| handle.kind == kind) {
                let how = places.next(object.born, object.ended_wrongly, object.context_released);
                self.emit(facts, at, What::LeftObject(how, *handle, object));
            }
        }
    }
}

/// What is left together.
#[derive(Debug, Default)]
pub(super) struct Leftovers<'t> {
    /// Handle data, and whether nothing is wrong with leaving it.
    pub(super) handles: Vec<(Handle, &'t HandleData, bool)>,
    pub(super) mappings: Vec<(u64, &'t Mapping)>,
    pub(super) objects: Vec<(Handle, &'t Object)>,
}

/// Whether handle data may be left: its memory is freed, or it was reported where it was ended in a wrong way.
pub(super) fn is_excused(state: &ProcessState, handle: Handle, data: &HandleData) -> bool {
    data.ended_wrongly || !state.must_put(handle, data)
}

/// Numbers what is left, apart for each place in the program that made it.
struct Places {
    reason: Reason,
    /// How many were numbered, how many there are, and when the first of them was made.
    counts: Map<Site, (usize, usize, Nanos)>,
}

/// A place in the program.
type Site = (Option<Function>, Option<u64>);

const fn site(born: Place) -> Site {
    (born.function, born.stack)
}

impl Places {
    fn of(reason: Reason, left: impl Iterator<Item = (Place, bool)>) -> Self {
        let mut counts = Map::default();
        for (born, _) in left.filter(|(_, excused)| !excused) {
            counts.entry(site(born)).or_insert((0, 0, born.time)).1 += 1;
        }
        Self { reason, counts }
    }

    fn next(&mut self, born: Place, excused: bool, released: Option<Place>) -> Left {
        let numbered = self.counts.entry(site(born)).or_insert((0, 0, born.time));
        let (index, count, since) = *numbered;
        let left = Left { reason: self.reason, excused, index, count, since, released };
        numbered.0 += usize::from(!excused);
        left
    }
}
