//! What is left when a process ends or a context is released: each thing is looked at, up to a limit.

use urscope_schema::handle::{Handle, Kind};

use super::{
    Tracker,
    fact::{Held, Left, What},
    process_state::ProcessState,
    records::{Allocation, HandleData, Mapping, Object, Serial},
};
use crate::{
    catalog::When,
    finding::{Finding, Place},
};

/// How many left objects of a kind are told one by one when a process ends; the last one stands for all others.
const LEFT_TOLD: usize = 256;

/// What a process or a context leaves when it goes.
#[derive(Clone, Copy)]
pub(super) struct Leaving<'w> {
    pub(super) tracker: &'w Tracker,
    pub(super) place: Place,
    pub(super) left: Left,
}

impl<'w> Leaving<'w> {
    /// What the process had opened of its own, what it showed beside it, and what others have open of it.
    pub(super) fn memory(self, life: &ProcessState, found: &mut Vec<Finding>) {
        if let Some(opened) = life.opened_here.as_ref().filter(|_| self.left == Left::Exited) {
            self.tracker.report(When::End, self.place, What::OpenedHere(opened), found);
        }
        if let Some(exposed) = life.exposed.as_ref().filter(|_| self.left == Left::Exited) {
            self.tracker.report(When::End, self.place, What::Exposed(exposed), found);
        }
        if self.left != Left::Incomplete {
            let held: Vec<_> = life.allocations.iter().filter_map(|(base, memory)| self.held(*base, memory)).collect();
            let each = held.iter().map(|held| ((), held));
            self.tell(each, |held| held.serial, |(), held| What::Gone(held, self.left), found);
        }
    }

    /// Who else has an allocation open.
    fn held(self, base: u64, memory: &Allocation) -> Option<Held> {
        let mut held: Option<Held> = None;
        for export in memory.exports.iter().filter_map(|id| self.tracker.exports.get(*id)) {
            for (process, pointer) in export.holders.iter().filter(|(process, _)| *process != self.place.process) {
                let mapped = self.tracker.life(*process).and_then(|life| life.mappings.get(pointer));
                let open = mapped.filter(|mapped| !mapped.accused).and_then(Mapping::last_open);
                let Some(opened) = open else { continue };
                let (what, fingerprint) = (Handle { kind: Kind::Usm, value: base }, export.fingerprint());
                let (serial, size, pointer) = (memory.serial, memory.size, *pointer);
                let first = Held { what, serial, size, fingerprint, holders: 0, opened, pointer };
                held.get_or_insert(first).holders += 1;
            }
        }
        held
    }

    pub(super) fn handles(self, left: impl Iterator<Item = (Handle, &'w HandleData)>, found: &mut Vec<Finding>) {
        let what = |handle, got| What::LeftHandle { handle, got, left: self.left };
        self.tell(left, |got| got.serial, what, found);
    }

    pub(super) fn mappings(self, left: impl Iterator<Item = (u64, &'w Mapping)>, found: &mut Vec<Finding>) {
        let what = |pointer, mapped| What::LeftMapping { pointer, mapped, left: self.left };
        self.tell(left, |mapped| mapped.serial, what, found);
    }

    pub(super) fn objects(self, left: impl Iterator<Item = (Handle, &'w Object)>, found: &mut Vec<Finding>) {
        let what = |handle, object| What::LeftObject { handle, object, left: self.left };
        let (memory, events): (Vec<_>, Vec<_>) = left.partition(|(handle, _)| handle.kind == Kind::PhysicalMem);
        for of_a_kind in [memory, events] {
            self.tell(of_a_kind.into_iter(), |object| object.serial, what, found);
        }
    }

    /// Tells the first of what is left, in the order in which it was made; the last one told stands for all others.
    fn tell<'v, K, V: 'v>(
        self,
        left: impl Iterator<Item = (K, &'v V)>,
        serial: impl Fn(&V) -> Serial,
        what: impl Fn(K, &'v V) -> What<'v>,
        found: &mut Vec<Finding>,
    ) {
        let mut left: Vec<_> = left.collect();
        left.sort_by_key(|(_, what)| serial(what));
        let all = left.len();
        for (key, one) in left.into_iter().take(LEFT_TOLD) {
            self.tracker.report(When::End, self.place, what(key, one), found);
        }
        stand_for_others(all, found);
    }
}

/// Where more objects were left than are told, the last finding counts for the rest.
fn stand_for_others(left: usize, found: &mut [Finding]) {
    if let (Some(more @ 1..), Some(last)) = (left.checked_sub(LEFT_TOLD), found.last_mut()) {
        last.count += more as u64;
    }
}
