//! Attributes of shared memory that say who may use atomic operations on it.
//!
//! All atomic operations work on all memory, so an attribute has no effect: it is stored for each
//! device and returned to queries. An attribute applies to a whole shared allocation. In memory of the
//! system, if kernels may use that, it applies to a range until another call changes it, because the
//! device does not learn when such memory is freed. Must never accept other memory of a device.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use parking_lot::Mutex;

use super::allocation::{Allocation, Kind};
use super::{lookup, retain};
use crate::discovery::context::Context;
use crate::discovery::device::{Device, Numbers};
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Address, Out, handles::Handle};
use crate::platform::settings;

/// All flags of `ze_memory_atomic_attr_exp_flags_t`.
const FLAGS: u32 = 0x7f;

/// Ranges of memory of the system with attributes, by their first addresses. They do not overlap.
type Ranges = BTreeMap<usize, (usize, u32)>;

/// The ranges of memory of the system, for each device: end and attributes of each.
static SYSTEM_RANGES: Mutex<BTreeMap<Numbers, Ranges>> = Mutex::new(BTreeMap::new());

enum Memory {
    Shared(Arc<Allocation>),
    OfTheSystem(Range<usize>),
}

/// `zeMemSetAtomicAccessAttributeExp` (ze_api.h). `INVALID_ARGUMENT` unless the range lies in one
/// shared allocation, or in memory of the system that kernels may use.
pub extern "C" fn set(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
    attributes: u32,
) -> ZeResult {
    call(|| {
        let (memory, device) = find(context, device, pointer, size)?;
        if attributes & !FLAGS != 0 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        match memory {
            Memory::Shared(allocation) => {
                allocation.atomics.lock().insert(device.numbers(), attributes);
            }
            Memory::OfTheSystem(range) => {
                let mut all = SYSTEM_RANGES.lock();
                replace(all.entry(device.numbers()).or_default(), range, attributes);
            }
        }
        Ok(())
    })
}

/// `zeMemGetAtomicAccessAttributeExp` (ze_api.h). 0 before the first call that sets some; errors as there.
pub extern "C" fn get(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
    attributes: Out<u32>,
) -> ZeResult {
    call(|| {
        let (memory, device) = find(context, device, pointer, size)?;
        let found = match memory {
            Memory::Shared(allocation) => allocation.atomics.lock().get(&device.numbers()).copied(),
            Memory::OfTheSystem(range) => {
                let all = SYSTEM_RANGES.lock();
                all.get(&device.numbers()).and_then(|ranges| at(ranges, range.start))
            }
        };
        attributes.write(found.unwrap_or_default())
    })
}

fn find(
    context: Handle<Context>,
    device: Handle<Device>,
    pointer: Address,
    size: usize,
) -> Outcome<(Memory, Arc<Device>)> {
    context.get()?;
    let device = device.get()?;
    pointer.check()?;
    let start = pointer.number();
    let end = start.checked_add(size).ok_or(ZeResult::INVALID_ARGUMENT)?;
    let memory = match lookup::find(start) {
        Some(found) if found.kind == Kind::Shared && end - found.base() <= found.size => Memory::Shared(found),
        None if settings::get().system_usm && retain(start).is_none() => Memory::OfTheSystem(start..end),
        _ => return Err(ZeResult::INVALID_ARGUMENT),
    };
    Ok((memory, device))
}

/// Gives a range these attributes, and leaves those of the rest.
fn replace(ranges: &mut Ranges, new: Range<usize>, attributes: u32) {
    if new.is_empty() {
        return;
    }
    let overlapping = ranges.range(..new.end).rev().take_while(|(_, (end, _))| *end > new.start);
    let overlapping: Vec<_> = overlapping.map(|(start, (end, attributes))| (*start, *end, *attributes)).collect();
    for (start, end, before) in overlapping {
        ranges.remove(&start);
        if start < new.start {
            ranges.insert(start, (new.start, before));
        }
        if end > new.end {
            ranges.insert(new.end, (end, before));
        }
    }
    ranges.insert(new.start, (new.end, attributes));
}

fn at(ranges: &Ranges, address: usize) -> Option<u32> {
    let (_, (end, attributes)) = ranges.range(..=address).next_back()?;
    (address < *end).then_some(*attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_replaces_what_it_overlaps_and_nothing_else() {
        let mut ranges = Ranges::new();
        let steps = [
            (10..50, 1, vec![(10, 50, 1)]),
            (20..30, 2, vec![(10, 20, 1), (20, 30, 2), (30, 50, 1)]),
            (15..35, 4, vec![(10, 15, 1), (15, 35, 4), (35, 50, 1)]),
            (40..40, 8, vec![(10, 15, 1), (15, 35, 4), (35, 50, 1)]),
            (5..60, 8, vec![(5, 60, 8)]),
        ];
        for (range, attributes, expected) in steps {
            replace(&mut ranges, range, attributes);
            let found: Vec<_> = ranges.iter().map(|(start, (end, attributes))| (*start, *end, *attributes)).collect();
            assert_eq!(found, expected);
        }
        assert_eq!([4, 5, 59, 60].map(|address| at(&ranges, address)), [None, Some(8), Some(8), None]);
    }
}
