//! Entry points that append commands to a list.
//!
//! Each checks its arguments, makes the work and hands it to the list with what it waits for and signals. Must never
//! read what a pointer argument names, except a fill pattern and the descriptions of regions, which the caller may
//! change as soon as the call returns.

use std::sync::Arc;

use crate::commands::list::CommandList;
use crate::commands::stream::Command;
use crate::commands::work::{Location, PitchedLocation, Work};
use crate::discovery::context::Context;
use crate::discovery::device::Device;
use crate::events::event::Event;
use crate::ffi::handles::Handle;
use crate::ffi::layout::command::CopyRegion;
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Address, In};

/// Size of `ze_kernel_timestamp_result_t`.
const TIMESTAMP_RESULT: usize = 32;

/// `zeCommandListAppendMemoryCopy` (ze_api.h).
pub extern "C" fn memory_copy(
    list: Handle<CommandList>,
    to: Address,
    from: Address,
    length: usize,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        to.check()?;
        from.check()?;
        append(
            &list,
            Work::Copy { to: Location::new(to), from: Location::new(from), length },
            signal,
            wait_count,
            waits,
        )
    })
}

/// `zeCommandListAppendMemoryCopyFromContext` (ze_api.h): all contexts share one address space.
pub extern "C" fn memory_copy_from_context(
    list: Handle<CommandList>,
    to: Address,
    context: Handle<Context>,
    from: Address,
    length: usize,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    match call(|| context.get().map(drop)) {
        ZeResult::SUCCESS => memory_copy(list, to, from, length, signal, wait_count, waits),
        refused => refused,
    }
}

/// `zeCommandListAppendMemoryFill` (ze_api.h): any pattern size; the last repetition may be cut.
pub extern "C" fn memory_fill(
    list: Handle<CommandList>,
    to: Address,
    pattern: In<u8>,
    pattern_size: usize,
    length: usize,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        to.check()?;
        pattern.check()?;
        if pattern_size == 0 {
            return Err(ZeResult::INVALID_SIZE);
        }
        let pattern = pattern.array(pattern_size)?.into();
        append(&list, Work::Fill { to: Location::new(to), pattern, length }, signal, wait_count, waits)
    })
}

/// `zeCommandListAppendMemoryCopyRegion` (ze_api.h): pitches in bytes; width and x in bytes; a depth of 0 is 1.
pub extern "C" fn memory_copy_region(
    list: Handle<CommandList>,
    to: Address,
    to_region: In<CopyRegion>,
    to_pitch: u32,
    to_slice_pitch: u32,
    from: Address,
    from_region: In<CopyRegion>,
    from_pitch: u32,
    from_slice_pitch: u32,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        to.check()?;
        from.check()?;
        let (to_region, from_region) = (to_region.read()?, from_region.read()?);
        let extent = [to_region.width as usize, to_region.height as usize, to_region.depth.max(1) as usize];
        let work = Work::CopyRegion {
            to: pitched(Location::new(to), &to_region, to_pitch, to_slice_pitch),
            from: pitched(Location::new(from), &from_region, from_pitch, from_slice_pitch),
            extent,
        };
        append(&list, work, signal, wait_count, waits)
    })
}

/// `zeCommandListAppendBarrier` (ze_api.h).
pub extern "C" fn barrier(
    list: Handle<CommandList>,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| append(&list.get()?, Work::Nothing, signal, wait_count, waits))
}

/// `zeCommandListAppendMemoryRangesBarrier` (ze_api.h): the same, whatever the ranges are.
pub extern "C" fn memory_ranges_barrier(
    list: Handle<CommandList>,
    range_count: u32,
    sizes: In<usize>,
    ranges: In<Address>,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        sizes.array(range_count as usize)?;
        ranges.array(range_count as usize)?;
        append(&list, Work::Nothing, signal, wait_count, waits)
    })
}

/// `zeCommandListAppendSignalEvent` (ze_api.h).
pub extern "C" fn signal_event(list: Handle<CommandList>, event: Handle<Event>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        event.get()?;
        append(&list, Work::Nothing, event, 0, In::NULL)
    })
}

/// `zeCommandListAppendWaitOnEvents` (ze_api.h).
pub extern "C" fn wait_on_events(list: Handle<CommandList>, count: u32, events: In<Handle<Event>>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        events.check()?;
        append(&list, Work::Nothing, Handle::NULL, count, events)
    })
}

/// `zeCommandListAppendEventReset` (ze_api.h): not for counter-based events.
pub extern "C" fn event_reset(list: Handle<CommandList>, event: Handle<Event>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let event = event.get()?;
        event.expect_flag()?;
        append(&list, Work::Reset(event), Handle::NULL, 0, In::NULL)
    })
}

/// `zeCommandListAppendWriteGlobalTimestamp` (ze_api.h).
pub extern "C" fn write_global_timestamp(
    list: Handle<CommandList>,
    to: Address,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        to.check()?;
        append(&list, Work::Timestamp { to: Location::new(to) }, signal, wait_count, waits)
    })
}

/// `zeCommandListAppendQueryKernelTimestamps` (ze_api.h). Without offsets the results lie one after the other.
pub extern "C" fn query_kernel_timestamps(
    list: Handle<CommandList>,
    count: u32,
    events: In<Handle<Event>>,
    to: Address,
    offsets: In<usize>,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        events.check()?;
        to.check()?;
        let events = events.objects(count)?;
        let offsets: Vec<usize> = if offsets.is_null() {
            (0..events.len()).map(|index| index * TIMESTAMP_RESULT).collect()
        } else {
            offsets.array(count as usize)?.to_vec()
        };
        let events = events.into_iter().zip(offsets).collect();
        append(&list, Work::EventTimestamps { to: Location::new(to), events }, signal, wait_count, waits)
    })
}

/// `zeCommandListAppendMemoryPrefetch` (ze_api.h): a hint, and all memory is where it is.
pub extern "C" fn memory_prefetch(list: Handle<CommandList>, pointer: Address, _size: usize) -> ZeResult {
    call(|| {
        let list = list.get()?;
        pointer.check()?;
        append(&list, Work::Nothing, Handle::NULL, 0, In::NULL)
    })
}

/// `zeCommandListAppendMemAdvise` (ze_api.h): a hint.
pub extern "C" fn mem_advise(
    list: Handle<CommandList>,
    device: Handle<Device>,
    pointer: Address,
    _size: usize,
    _advice: u32,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        device.get()?;
        pointer.check()?;
        append(&list, Work::Nothing, Handle::NULL, 0, In::NULL)
    })
}

fn append(
    list: &Arc<CommandList>,
    work: Work,
    signal: Handle<Event>,
    wait_count: u32,
    waits: In<Handle<Event>>,
) -> Outcome {
    if wait_count > 0 && waits.is_null() {
        return Err(ZeResult::INVALID_SIZE);
    }
    let waits = waits.objects(wait_count)?;
    let signals = signal.get_optional()?;
    list.append(Command { work, waits, signals })
}

/// The first byte of a region and its pitches. Without a slice pitch a slice is as many rows as the region has.
fn pitched(place: Location, region: &CopyRegion, pitch: u32, slice_pitch: u32) -> PitchedLocation {
    let row = pitch as usize;
    let slice = if slice_pitch == 0 { row * region.height as usize } else { slice_pitch as usize };
    let offset = region.origin_x as usize + region.origin_y as usize * row + region.origin_z as usize * slice;
    PitchedLocation { place: place.forward(offset), row, slice }
}
