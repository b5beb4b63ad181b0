//! Reserved address space, and the physical memory that is mapped in it.
//!
//! A reservation is inaccessible except where memory is mapped; mappings may be split at any page. Unmapping takes
//! effect at once for all queries. While work in flight refers to the reservation the pages themselves stay, so that a
//! command that has yet to run does not fault. Must never release physical memory under its lock, nor before its pages
//! are unmapped.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::physical::PhysicalMemory;
use crate::ffi::result::{Outcome, ZeResult};
use crate::shared_memory::PAGE;
use crate::shared_memory::mapping::{Access, Mapping};

static LIVE: RwLock<BTreeMap<usize, Arc<Reservation>>> = RwLock::new(BTreeMap::new());

/// Reserved address space, in whole pages: `UNSUPPORTED_SIZE` or `UNSUPPORTED_ALIGNMENT` for any other range.
pub struct Reservation {
    // Before the ranges: memory must be unmapped before it is released.
    space: Mapping,
    state: Mutex<ReservationState>,
}

#[derive(Default)]
struct ReservationState {
    mapped: Ranges,
    /// Unmapped by the application, but still there for work in flight.
    lingering: Ranges,
    users: usize,
}

/// Ranges of pages by first address; they do not overlap.
#[derive(Default)]
struct Ranges(BTreeMap<usize, Range>);

#[derive(Clone)]
struct Range {
    length: usize,
    access: Access,
    /// One for each map call: it distinguishes the pieces of one mapping from their neighbours.
    mapping: Arc<Mapped>,
}

struct Mapped {
    physical: Arc<PhysicalMemory>,
    /// The first address, and the offset in the physical memory that it shows.
    base: usize,
    offset: usize,
}

/// A mapping as an application sees it.
pub(crate) struct View {
    pub physical: Arc<PhysicalMemory>,
    pub base: usize,
    /// Its length, in bytes.
    pub length: usize,
}

impl Reservation {
    /// Reserves `length` bytes, at `wanted` if that is free, and returns the first address: `OUT_OF_HOST_MEMORY` if the
    /// address space is exhausted.
    pub fn reserve(wanted: usize, length: usize) -> Outcome<usize> {
        check_range(wanted, length)?;
        let space = Mapping::reserve(wanted, length)?;
        let base = space.base();
        LIVE.write().insert(base, Arc::new(Self { space, state: Mutex::default() }));
        Ok(base)
    }

    /// Releases the reservation of exactly this range, with everything that is mapped in it, once no work in flight
    /// refers to it: `INVALID_ARGUMENT` if there is none.
    pub fn free(base: usize, length: usize) -> Outcome {
        check_range(base, length)?;
        let mut live = LIVE.write();
        if live.get(&base).is_none_or(|found| found.space.length() != length) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        let freed = live.remove(&base);
        drop(live);
        drop(freed);
        Ok(())
    }

    /// Maps `length` bytes of `physical` from `offset` at `base`: `UNSUPPORTED_ALIGNMENT` if the offset is not that of
    /// a page, `INVALID_ARGUMENT` for a range that is not reserved, is mapped already, or exceeds the physical memory.
    pub fn map(base: usize, length: usize, physical: Arc<PhysicalMemory>, offset: usize, access: Access) -> Outcome {
        check_range(base, length)?;
        if !offset.is_multiple_of(PAGE) {
            return Err(ZeResult::UNSUPPORTED_ALIGNMENT);
        }
        if offset.checked_add(length).is_none_or(|end| end > physical.size) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        let reservation = Self::containing(base, length)?;
        let mut state = reservation.state.lock();
        if state.mapped.overlaps(base, length) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        let (file, start) = physical.pages();
        reservation.space.show(base, length, file, start + offset as u64, access)?;
        let replaced = state.lingering.cut(base, length);
        state.mapped.0.insert(base, Range { length, access, mapping: Arc::new(Mapped { physical, base, offset }) });
        drop(state);
        drop(replaced);
        Ok(())
    }

    /// Unmaps a range: `INVALID_ARGUMENT` unless all of it is mapped.
    pub fn unmap(base: usize, length: usize) -> Outcome {
        let reservation = Self::containing(base, length)?;
        let mut state = reservation.state.lock();
        if !state.mapped.covers(base, length) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        if state.users == 0 {
            reservation.space.hide(base, length)?;
        }
        let gone = state.mapped.cut(base, length);
        if state.users > 0 {
            state.lingering.0.extend(gone);
            return Ok(());
        }
        drop(state);
        drop(gone);
        Ok(())
    }

    /// Changes the access to a range: `INVALID_ARGUMENT` unless all of it is mapped.
    pub fn set_access(base: usize, length: usize, access: Access) -> Outcome {
        let reservation = Self::containing(base, length)?;
        let mut state = reservation.state.lock();
        if !state.mapped.covers(base, length) {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        reservation.space.protect(base, length, access)?;
        let changed = state.mapped.cut(base, length);
        state.mapped.0.extend(changed.into_iter().map(|(at, range)| (at, Range { access, ..range })));
        Ok(())
    }

    /// The access to the page at `base`, and the number of bytes from there on that have the same access, at most
    /// `length`: `INVALID_ARGUMENT` for a range that is not reserved.
    pub(crate) fn access(base: usize, length: usize) -> Outcome<(Access, usize)> {
        let reservation = Self::containing(base, length)?;
        let state = reservation.state.lock();
        let (access, mut end) = state.mapped.access_at(base, base + length);
        while end < base + length {
            let (next, to) = state.mapped.access_at(end, base + length);
            if next != access {
                break;
            }
            end = to;
        }
        Ok((access, end - base))
    }

    /// The reservation that contains a range: `INVALID_ARGUMENT` if there is none.
    fn containing(base: usize, length: usize) -> Outcome<Arc<Self>> {
        check_range(base, length)?;
        find(base).filter(|found| found.holds(base, length)).ok_or(ZeResult::INVALID_ARGUMENT)
    }

    /// The mapping that contains `address`.
    pub(crate) fn view(&self, address: usize) -> Option<View> {
        let state = self.state.lock();
        let (at, found) = state.mapped.at(address)?;
        let same = |(_, range): &(&usize, &Range)| Arc::ptr_eq(&range.mapping, &found.mapping);
        let mut base = at;
        let mut end = at + found.length;
        // Adjacent pieces of the same mapping belong to it.
        for (start, range) in state.mapped.0.range(..at).rev().take_while(same) {
            if start + range.length == base {
                base = *start;
            }
        }
        for (start, range) in state.mapped.0.range(end..).take_while(same) {
            if *start == end {
                end += range.length;
            }
        }
        Some(View { physical: Arc::clone(&found.mapping.physical), base, length: end - base })
    }

    fn holds(&self, base: usize, length: usize) -> bool {
        let start = self.space.base();
        let end = self.space.base() + self.space.length();
        base >= start && base.checked_add(length).is_some_and(|to| to <= end)
    }

    /// Keeps the pages mapped for work in flight.
    pub(crate) fn retain(self: Arc<Self>) -> ReservationRef {
        self.state.lock().users += 1;
        ReservationRef(self)
    }
}

/// A reference of work in flight to a reservation.
pub(crate) struct ReservationRef(Arc<Reservation>);

impl Clone for ReservationRef {
    fn clone(&self) -> Self {
        Arc::clone(&self.0).retain()
    }
}

impl ReservationRef {
    /// [`Retained::shared_at`](super::Retained::shared_at).
    pub(super) fn shared_at(&self, address: usize, length: usize) -> Option<(u64, u64)> {
        let state = self.0.state.lock();
        let (start, range) = state.mapped.at(address)?;
        let Mapped { physical, base, offset } = &*range.mapping;
        let (file, begins) = physical.shared_range()?;
        let is_whole = length <= start + range.length - address;
        is_whole.then(|| (file, begins + (address - base + offset) as u64))
    }

    /// The end of the mapped range that contains an address.
    pub(super) fn end_of_range(&self, address: usize) -> Option<usize> {
        self.0.state.lock().mapped.at(address).map(|(start, range)| start + range.length)
    }
}

impl Drop for ReservationRef {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.users -= 1;
        if state.users > 0 {
            return;
        }
        let gone = std::mem::take(&mut state.lingering);
        for (at, range) in &gone.0 {
            // Fails only if the kernel has no memory. The pages are then unmapped with the reservation.
            let _ = self.0.space.hide(*at, range.length);
        }
        drop(state);
        drop(gone);
    }
}

/// The reservation that contains `address`.
pub(crate) fn find(address: usize) -> Option<Arc<Reservation>> {
    let live = LIVE.read();
    let (_, found) = live.range(..=address).next_back()?;
    found.holds(address, 1).then(|| Arc::clone(found))
}

/// `UNSUPPORTED_SIZE` or `UNSUPPORTED_ALIGNMENT` unless the range is one or more whole pages.
fn check_range(base: usize, length: usize) -> Outcome {
    if length == 0 || !length.is_multiple_of(PAGE) {
        return Err(ZeResult::UNSUPPORTED_SIZE);
    }
    if base.is_multiple_of(PAGE) { Ok(()) } else { Err(ZeResult::UNSUPPORTED_ALIGNMENT) }
}

/// The mapping that contains `address`, in any reservation.
pub(crate) fn view(address: usize) -> Option<View> {
    find(address)?.view(address)
}

impl Ranges {
    /// The range that contains an address.
    fn at(&self, address: usize) -> Option<(usize, &Range)> {
        let (base, range) = self.0.range(..=address).next_back()?;
        (address - base < range.length).then_some((*base, range))
    }

    fn overlaps(&self, base: usize, length: usize) -> bool {
        self.at(base).is_some() || self.0.range(base..base + length).next().is_some()
    }

    fn covers(&self, base: usize, length: usize) -> bool {
        let mut at = base;
        while at < base + length {
            match self.at(at) {
                Some((start, range)) => at = start + range.length,
                None => return false,
            }
        }
        true
    }

    /// The access at an address, and the end of the piece with that access, at most `end`. Unmapped pages have no
    /// access.
    fn access_at(&self, address: usize, end: usize) -> (Access, usize) {
        match self.at(address) {
            Some((start, range)) => (range.access, end.min(start + range.length)),
            None => (Access::None, self.0.range(address..end).next().map_or(end, |(start, _)| *start)),
        }
    }

    /// Removes everything in a range, splitting what crosses its ends.
    fn cut(&mut self, base: usize, length: usize) -> BTreeMap<usize, Range> {
        let end = base + length;
        self.split(base);
        self.split(end);
        let mut inside = self.0.split_off(&base);
        let mut above = inside.split_off(&end);
        self.0.append(&mut above);
        inside
    }

    /// Splits a range that crosses `address` into two.
    fn split(&mut self, address: usize) {
        let Some((start, range)) = self.at(address).map(|(start, range)| (start, range.clone())) else { return };
        if start < address {
            let upper = Range { length: start + range.length - address, ..range.clone() };
            self.0.insert(start, Range { length: address - start, ..range });
            self.0.insert(address, upper);
        }
    }
}
