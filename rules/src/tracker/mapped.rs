//! Addresses that physical memory is mapped at: found by address, and by the physical memory.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use urscope_schema::call::Nanos;

use super::records::{MappedRange, Serial};

/// Ranges that do not overlap, by their first addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedRanges {
    ranges: BTreeMap<u64, MappedRange>,
    /// The life of the physical memory and the first address of each range.
    by_memory: BTreeSet<(Serial, u64)>,
}

impl MappedRanges {
    /// Adds a range. It replaces what was mapped at these addresses.
    pub(crate) fn insert(&mut self, start: u64, range: MappedRange) {
        self.take(start, range.end);
        self.add(start, range);
    }

    /// Removes what is mapped from `start` to `end`. The parts of ranges outside stay mapped.
    pub(crate) fn take(&mut self, start: u64, end: u64) -> Vec<(u64, MappedRange)> {
        let mut taken = Vec::new();
        if start >= end {
            return taken;
        }
        let before = self.ranges.range(..start).next_back().filter(|(_, range)| range.end > start);
        let touched = before.into_iter().chain(self.ranges.range(start..end));
        let touched: SmallVec<[u64; 4]> = touched.map(|(from, _)| *from).collect();
        for from in touched {
            let Some(range) = self.remove(from) else { continue };
            self.add(from, MappedRange { end: start, ..range });
            self.add(end, range);
            taken.push((from.max(start), MappedRange { end: range.end.min(end), ..range }));
        }
        taken
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// All ranges, in the order of addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &MappedRange)> {
        self.ranges.iter().map(|(start, range)| (*start, range))
    }

    /// The range that an address lies in.
    pub(crate) fn at(&self, address: u64) -> Option<&MappedRange> {
        self.around(address).map(|(_, range)| range)
    }

    /// A command is enqueued that accesses an address, which may lie in memory of another process.
    pub(crate) fn note_access(&mut self, address: u64, time: Nanos) {
        let before = self.ranges.range_mut(..=address).next_back().map(|(_, range)| range);
        if let Some(range) = before.filter(|range| address < range.end && range.imported) {
            range.first_access.get_or_insert(time);
        }
    }

    /// The range that an address lies in, with its first address.
    pub(crate) fn around(&self, address: u64) -> Option<(u64, &MappedRange)> {
        let (start, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end).then_some((*start, range))
    }

    /// The first address behind the one given at which nothing is mapped.
    pub(crate) fn end_from(&self, address: u64) -> u64 {
        let mut end = address;
        while let Some(range) = self.at(end) {
            end = range.end;
        }
        end
    }

    /// The ranges of one life of physical memory, in the order of addresses.
    pub(crate) fn ranges_of(&self, memory: Serial) -> impl Iterator<Item = (u64, &MappedRange)> {
        let starts = self.by_memory.range((memory, 0)..=(memory, u64::MAX));
        starts.filter_map(|(_, start)| Some((*start, self.ranges.get(start)?)))
    }

    /// Removes the ranges of one life of physical memory.
    pub(crate) fn forget(&mut self, memory: Serial) {
        let starts: SmallVec<[u64; 4]> = self.ranges_of(memory).map(|(start, _)| start).collect();
        for start in starts {
            self.remove(start);
        }
    }

    /// The ranges of one life of physical memory are those of another one from now on.
    pub(crate) fn live_on(&mut self, memory: Serial, serial: Serial) {
        let starts: SmallVec<[u64; 4]> = self.ranges_of(memory).map(|(start, _)| start).collect();
        for start in starts {
            if let Some(range) = self.remove(start) {
                self.add(start, MappedRange { serial, ..range });
            }
        }
    }

    /// Adds a range at addresses where nothing is mapped, unless it is empty.
    fn add(&mut self, start: u64, range: MappedRange) {
        if start < range.end {
            self.ranges.insert(start, range);
            self.by_memory.insert((range.serial, start));
        }
    }

    fn remove(&mut self, start: u64) -> Option<MappedRange> {
        let removed = self.ranges.remove(&start)?;
        self.by_memory.remove(&(removed.serial, start));
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use urscope_schema::handle::{Handle, Kind};

    use super::*;
    use crate::place::{Place, ProcessId};

    fn range(serial: Serial, end: u64) -> MappedRange {
        let memory = Handle { kind: Kind::PhysicalMem, value: serial };
        MappedRange {
            end,
            memory,
            serial,
            place: Place::outside_calls(ProcessId(0), Nanos(0)),
            imported: false,
            export: None,
            first_access: None,
        }
    }

    fn spans_of(ranges: &MappedRanges, memory: Serial) -> Vec<(u64, u64)> {
        ranges.ranges_of(memory).map(|(start, range)| (start, range.end)).collect()
    }

    #[test]
    fn what_is_taken_out_leaves_what_is_beside_it() {
        let mut ranges = MappedRanges::default();
        for (start, memory, end) in [(10, 1, 20), (20, 2, 30), (40, 1, 50)] {
            ranges.insert(start, range(memory, end));
        }
        assert_eq!((spans_of(&ranges, 1), spans_of(&ranges, 2)), (vec![(10, 20), (40, 50)], vec![(20, 30)]));
        let taken: Vec<_> = ranges.take(15, 45).into_iter().map(|(start, range)| (start, range.end)).collect();
        assert_eq!(taken, [(15, 20), (20, 30), (40, 45)]);
        assert_eq!((spans_of(&ranges, 1), spans_of(&ranges, 2)), (vec![(10, 15), (45, 50)], vec![]));
        assert_eq!(ranges.take(12, 14).len(), 1);
        assert_eq!(spans_of(&ranges, 1), [(10, 12), (14, 15), (45, 50)]);
        for (start, end) in [(12, 14), (15, 45), (11, 11), (50, u64::MAX), (14, 10)] {
            assert!(ranges.take(start, end).is_empty(), "{start} to {end}");
        }
        assert_eq!(
            [9, 10, 11, 12, 49, 50].map(|address| ranges.at(address).is_some()),
            [false, true, true, false, true, false]
        );
        ranges.insert(0, range(3, u64::MAX));
        assert_eq!((spans_of(&ranges, 1), spans_of(&ranges, 3)), (vec![], vec![(0, u64::MAX)]));
        ranges.forget(3);
        assert!(spans_of(&ranges, 3).is_empty() && ranges.take(0, u64::MAX).is_empty());
    }
}
