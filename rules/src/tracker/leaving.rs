//! The end of a process: facts for its leftovers, in the order in which they were made; then its transition.

use std::num::NonZeroU64;

use urscope_schema::api::{Function, Promise};
use urscope_schema::call::{Executed, Nanos};
use urscope_schema::handle::{Handle, Kind};

use super::fact::{Descriptors, FactConsumer, Leftover, Reason, What};
use super::records::{Command, HandleData, MappedRange, Mapping, Object, Origin, OwnDescriptor};
use super::{maps::Map, process::End, process_state::ProcessState, state::Tracker, transitions};
use crate::lifecycle::State;
use crate::place::{Place, ProcessId};

impl Tracker {
    /// A process ends, with its last record at `at`.
    ///
    /// From here on nothing is open in it, even if it still runs: what it did after its last record is not known.
    pub fn end(&mut self, who: ProcessId, how: End, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        self.unknown_ends(who, how, facts);
        self.facts_of_end(who, how, at, facts);
        transitions::end(self, who, how, at);
    }

    /// The run is over. Processes that have not ended do not change.
    pub fn finish(&self, facts: &mut (impl FactConsumer + ?Sized)) {
        self.emit(facts, Place::outside_calls(ProcessId(0), Nanos(0)), What::Finished);
    }

    /// A sample of the number of open descriptors of a process.
    pub fn descriptors(&mut self, who: ProcessId, open: u64, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(who) else { return };
        let exported = state.descriptors.len() as u64;
        let calls = state.ipc_calls;
        let sample = Descriptors { open, held: state.held(), exported, calls };
        self.emit(facts, Place::outside_calls(who, at), What::Descriptors(sample));
    }

    /// The device has executed a command of one of the latest calls, or of a call that was not recorded.
    pub fn executed(&mut self, who: ProcessId, executed: &Executed, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(who) else { return };
        if executed.call == 0 {
            self.emit(facts, Place::outside_calls(who, executed.begin), What::Executed(executed, None));
            return;
        }
        let is_it = |command: &&Command| command.place.call == NonZeroU64::new(executed.call);
        let Some(Command { place, addresses: [to, from], .. }) = state.commands.iter().rev().find(is_it) else {
            return;
        };
        let address = match (executed.access.is_certain(), to, from) {
            (true, to, from) => *if executed.access.writes() { to } else { from },
            (false, Some(given), None) | (false, None, Some(given)) => Some(*given),
            // A kernel with several pointers.
            (false, ..) => None,
        };
        let memory = address.and_then(|address| {
            let mapping = state.mapping_at(address).map(|(base, _)| (Kind::Mapping, base));
            mapping.or_else(|| state.allocation_at(address).map(|(base, _)| (Kind::Usm, base)))
        });
        let memory = memory.map(|(kind, value)| Handle { kind, value });
        self.emit(facts, *place, What::Executed(executed, memory));
    }

    /// The leftovers of a process if it ended now. The tracker does not change, and nothing is allocated if
    /// there are none.
    pub fn facts_of_end(&self, who: ProcessId, how: End, at: Nanos, facts: &mut (impl FactConsumer + ?Sized)) {
        let Some(state) = self.state(who).filter(|state| state.ended.is_none()) else { return };
        let place = Place::outside_calls(who, at);
        self.emit(facts, place, What::ProcessEnded(how));
        let reason = match how {
            End::Exited => Reason::Exited,
            End::Exec => Reason::Exec,
            End::Killed => Reason::Killed,
            End::Incomplete => Reason::Incomplete,
            End::Running => return,
        };
        let handles = state.handles.iter().filter(|(_, data)| data.state == State::Alive);
        let replaced = state.replaced.iter().map(|(pointer, mapping)| (*pointer, mapping));
        let mappings = state.mappings.iter().filter(|(_, mapping)| mapping.state == State::Alive).chain(replaced);
        let objects = state.objects.iter();
        let objects = objects.filter(|(_, object)| object.origin == Origin::Imported && object.state == State::Alive);
        // Memory that is not released is left itself.
        let is_released = |range: &MappedRange| {
            let object = state.objects.get(&range.memory).filter(|object| object.serial == range.serial);
            object.is_none_or(|object| object.state != State::Alive)
        };
        let ranges = state.mapped.iter().filter(|(_, range)| {
            range.imported && range.place.promises(Promise::MappingsHoldMemory) && is_released(range)
        });
        // What mapped memory holds, it holds anyway.
        let has_ended = |memory: &OwnDescriptor| {
            memory.released.is_some()
                && memory.serial.is_some_and(|serial| state.mapped.ranges_of(serial).next().is_none())
        };
        let kept =
            state.descriptors.iter().filter(|(_, memory)| memory.is_kept && how == End::Exited && has_ended(memory));
        let left = Leftovers {
            descriptors: kept.map(|(number, memory)| (*number, memory)).collect(),
            ranges: ranges.collect(),
            handles: handles.map(|(handle, data)| (*handle, data, is_excused(state, *handle, data))).collect(),
            mappings: mappings.collect(),
            objects: objects.map(|(handle, object)| (*handle, object)).collect(),
        };
        self.facts_of_left(place, reason, left, facts);
        if how == End::Incomplete {
            self.emit(facts, place, What::CallsMissing(state.missing));
        }
    }

    fn facts_of_left(
        &self,
        at: Place,
        reason: Reason,
        mut left: Leftovers<'_>,
        facts: &mut (impl FactConsumer + ?Sized),
    ) {
        left.handles.sort_unstable_by_key(|(_, data, _)| data.serial);
        let mut places =
            Places::new(reason, left.handles.iter().map(|(_, data, excused)| (data.born, *excused, data.size)));
        for (handle, data, excused) in left.handles {
            let how = places.next(data.born, excused, data.context_released);
            self.emit(facts, at, What::LeftHandle(how, handle, data));
        }
        left.mappings.sort_unstable_by_key(|(_, mapping)| mapping.serial);
        let opened = |mapping: &Mapping| mapping.first_open().unwrap_or(at);
        let mut places = Places::new(
            reason,
            left.mappings.iter().map(|(_, mapping)| (opened(mapping), mapping.ended_wrongly, mapping.size)),
        );
        for (pointer, mapping) in left.mappings {
            let released = mapping.opens.iter().rev().find_map(|open| open.context_released);
            let how = places.next(opened(mapping), mapping.ended_wrongly, released);
            self.emit(facts, at, What::LeftMapping(how, pointer, mapping));
        }
        left.ranges.sort_unstable_by_key(|(start, range)| (range.place.time, *start));
        let mut places =
            Places::new(reason, left.ranges.iter().map(|(start, range)| (range.place, false, Some(range.end - start))));
        for (start, range) in left.ranges {
            let how = places.next(range.place, false, None);
            self.emit(facts, at, What::LeftRange(how, start, range));
        }
        left.descriptors.sort_unstable_by_key(|(number, memory)| (memory.got.time, *number));
        let mut places = Places::new(reason, left.descriptors.iter().map(|(_, memory)| (memory.got, false, None)));
        for (number, memory) in left.descriptors {
            let how = places.next(memory.got, false, None);
            self.emit(facts, at, What::LeftDescriptor(how, number, memory));
        }
        left.objects.sort_unstable_by_key(|(_, object)| object.serial);
        let mut places = Places::new(
            reason,
            left.objects.iter().map(|(_, object)| (object.born, object.ended_wrongly, object.size)),
        );
        for kind in [Kind::PhysicalMem, Kind::Event, Kind::EventPool] {
            for (handle, object) in left.objects.iter().filter(|(handle, _)| handle.kind == kind) {
                let how = places.next(object.born, object.ended_wrongly, object.context_released);
                self.emit(facts, at, What::LeftObject(how, *handle, object));
            }
        }
    }
}

/// The leftovers of a process.
#[derive(Debug, Default)]
struct Leftovers<'t> {
    /// Handle data, and whether it is excused.
    handles: Vec<(Handle, &'t HandleData, bool)>,
    mappings: Vec<(u64, &'t Mapping)>,
    ranges: Vec<(u64, &'t MappedRange)>,
    descriptors: Vec<(u32, &'t OwnDescriptor)>,
    objects: Vec<(Handle, &'t Object)>,
}

/// Whether handle data is excused: its memory is freed, or the call that ended it in a wrong way was reported.
fn is_excused(state: &ProcessState, handle: Handle, data: &HandleData) -> bool {
    data.ended_wrongly || !state.must_put(handle, data)
}

/// Numbers leftovers, separately for each place in the program that made them.
struct Places {
    reason: Reason,
    groups: Map<Site, Group>,
}

/// The leftovers of a place that are not excused.
struct Group {
    /// How many were numbered, and how many there are.
    numbered: usize,
    count: usize,
    /// When the first was made, and the last.
    since: Nanos,
    until: Nanos,
    bytes: u64,
}

impl Group {
    const fn new(first: Nanos) -> Self {
        Self { numbered: 0, count: 0, since: first, until: first, bytes: 0 }
    }
}

/// A leftover: where it was made, whether it is excused, and its size.
type Made = (Place, bool, Option<u64>);

/// A place in the program.
type Site = (Option<Function>, Option<NonZeroU64>);

const fn site(born: Place) -> Site {
    (born.function, born.stack)
}

impl Places {
    fn new(reason: Reason, left: impl Iterator<Item = Made>) -> Self {
        let mut groups = Map::default();
        for (born, _, size) in left.filter(|(_, excused, _)| !excused) {
            let group: &mut Group = groups.entry(site(born)).or_insert(Group::new(born.time));
            group.count += 1;
            group.until = group.until.max(born.time);
            group.bytes = group.bytes.saturating_add(size.unwrap_or_default());
        }
        Self { reason, groups }
    }

    fn next(&mut self, born: Place, excused: bool, released: Option<Place>) -> Leftover {
        let group = self.groups.entry(site(born)).or_insert(Group::new(born.time));
        let Group { numbered: index, count, since, until, bytes } = *group;
        group.numbered += usize::from(!excused);
        Leftover { reason: self.reason, excused, index, count, since, until, bytes, released }
    }
}
