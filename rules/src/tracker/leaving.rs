//! The facts of a process that ends or of a context that is released: what is left in it, in the order in which it was made.

use urscope_schema::{
    call::Nanos,
    handle::{Handle, Kind},
};

use super::{
    End, ProcessId, Tracker, end_of,
    fact::{FactConsumer, Left, Reason, What},
    process_state::ProcessState,
    records::{HandleData, Mapping, Object, Origin},
};
use crate::{finding::Place, lifecycle::State};

impl Tracker {
    /// What a process would leave if it ended like that now. Nothing moves, and nothing is allocated where nothing is left.
    pub fn facts_of_end(&self, who: ProcessId, how: End, at: Nanos, facts: &mut dyn FactConsumer) {
        let Some(state) = self.state(who).filter(|state| state.ended.is_none()) else { return };
        let place = end_of(who, at);
        self.emit(facts, place, What::ProcessEnded(how));
        let reason = match how {
            End::Exited => Reason::Exited,
            End::Killed => Reason::Killed,
            End::Incomplete => Reason::Incomplete,
            End::Running => return,
        };
        let handles = state.handles.iter().filter(|(_, data)| data.state == State::Alive);
        let mappings = state.mappings.iter().filter(|(_, mapping)| mapping.state == State::Alive);
        let objects = state.objects.iter();
        let objects = objects.filter(|(_, object)| object.origin == Origin::Imported && object.state == State::Alive);
        let left = Leftovers {
            handles: handles.map(|(handle, data)| (*handle, data, is_excused(state, *handle, data))).collect(),
            mappings: mappings.collect(),
            objects: objects.map(|(handle, object)| (*handle, object)).collect(),
        };
        self.facts_of_left(place, reason, left, facts);
        if how == End::Incomplete {
            self.emit(facts, place, What::CallsMissing(state.missing));
        }
    }

    pub(super) fn facts_of_left(
        &self,
        at: Place,
        reason: Reason,
        mut left: Leftovers<'_>,
        facts: &mut dyn FactConsumer,
    ) {
        left.handles.sort_unstable_by_key(|(_, data, _)| data.serial);
        let mut place = Places::of(reason, left.handles.iter().map(|(.., excused)| *excused));
        for (handle, data, excused) in left.handles {
            self.emit(facts, at, What::LeftHandle(place.next(excused), handle, data));
        }
        left.mappings.sort_unstable_by_key(|(_, mapping)| mapping.serial);
        let mut place = Places::of(reason, left.mappings.iter().map(|(_, mapping)| mapping.ended_wrongly));
        for (pointer, mapping) in left.mappings {
            self.emit(facts, at, What::LeftMapping(place.next(mapping.ended_wrongly), pointer, mapping));
        }
        left.objects.sort_unstable_by_key(|(_, object)| object.serial);
        for kind in [Kind::PhysicalMem, Kind::Event] {
            let of_kind = || left.objects.iter().filter(|(handle, _)| handle.kind == kind);
            let mut place = Places::of(reason, of_kind().map(|(_, object)| object.ended_wrongly));
            for (handle, object) in of_kind() {
                self.emit(facts, at, What::LeftObject(place.next(object.ended_wrongly), *handle, object));
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

/// Numbers what is left.
struct Places {
    reason: Reason,
    next: usize,
    count: usize,
}

impl Places {
    fn of(reason: Reason, excused: impl Iterator<Item = bool>) -> Self {
        Self { reason, next: 0, count: excused.filter(|excused| !excused).count() }
    }

    fn next(&mut self, excused: bool) -> Left {
        let left = Left { reason: self.reason, excused, index: self.next, count: self.count };
        self.next += usize::from(!excused);
        left
    }
}
