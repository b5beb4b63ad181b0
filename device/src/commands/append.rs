//! Entry points that append commands to a list.
//!
//! Each checks its arguments, creates the work, and passes it to the list with the events to wait for and to signal.
//! Must never access the memory that an address argument names: only the work does, when it is performed.

use std::sync::Arc;

use crate::commands::list::CommandList;
use crate::commands::stream::{Command, Wait};
use crate::commands::work::{Region, Work};
use crate::discovery::{context::Context, device::Device};
use crate::events::event::Event;
use crate::ffi::layout::{Base, CopyRegion};
use crate::ffi::result::{Outcome, ZeResult, call};
use crate::ffi::{Address, Argument, HostFunction, In, UserData, handles::Handle};

/// Entry points that end with the event to signal and the events to wait for. Each creates its work from the list and
/// the other arguments.
macro_rules! append_calls {
    ($(
        $(#[$doc:meta])*
        $name:ident($list:ident $(, $argument:ident: $type:ty)* $(,)?) $work:block
    )*) => {$(
        $(#[$doc])*
        pub extern "C" fn $name(
            $list: Handle<CommandList>,
            $($argument: $type,)*
            signal: Handle<Event>,
            wait_count: Argument<u32>,
            waits: In<Handle<Event>>,
        ) -> ZeResult {
            call(|| {
                let $list = $list.get()?;
                let work = || -> Outcome<Work> { $work };
                append(&$list, work()?, signal, wait_count, waits)
            })
        }
    )*};
}
pub(super) use append_calls;

append_calls! {
    /// `zeCommandListAppendMemoryCopy` (ze_api.h).
    memory_copy(list, to: Address, from: Address, length: Argument<usize>) {
        copy(to, from, length)
    }

    /// `zeCommandListAppendMemoryCopyWithParameters` (ze_api.h). No extension is known: `UNSUPPORTED_FEATURE` for any.
    memory_copy_with_parameters(list, to: Address, from: Address, length: Argument<usize>, extensions: In<Base>) {
        extensions.check_no_extension()?;
        copy(to, from, length)
    }

    /// `zeCommandListAppendMemoryCopyFromContext` (ze_api.h). All contexts share one address space.
    memory_copy_from_context(
        list,
        to: Address,
        context: Handle<Context>,
        from: Address,
        length: Argument<usize>,
    ) {
        context.get()?;
        copy(to, from, length)
    }

    /// `zeCommandListAppendMemoryFill` (ze_api.h). Accepts any pattern size except 0, up to the largest of the queue
    /// group; the last repetition may be cut.
    memory_fill(list, to: Address, pattern: In<u8>, pattern_size: Argument<usize>, length: Argument<usize>) {
        fill(&list, to, pattern, pattern_size, length)
    }

    /// `zeCommandListAppendMemoryFillWithParameters` (ze_api.h). No extension is known: `UNSUPPORTED_FEATURE` for any.
    memory_fill_with_parameters(
        list,
        to: Address,
        pattern: In<u8>,
        pattern_size: Argument<usize>,
        length: Argument<usize>,
        extensions: In<Base>,
    ) {
        extensions.check_no_extension()?;
        fill(&list, to, pattern, pattern_size, length)
    }

    /// `zeCommandListAppendHostFunction` (ze_api.h). A thread of the device calls the function, with all
    /// signals blocked but those of faults. No extension is known: `UNSUPPORTED_FEATURE` for any.
    host_function(list, function: HostFunction, data: UserData, extensions: In<Base>) {
        let work = Work::host_function(function, data)?;
        extensions.check_no_extension()?;
        Ok(work)
    }

    /// `zeCommandListAppendMemoryCopyRegion` (ze_api.h). Pitches, width and x are in bytes; a depth of 0 means 1.
    memory_copy_region(
        list,
        to: Address,
        to_region: In<CopyRegion>,
        to_pitch: Argument<u32>,
        to_slice_pitch: Argument<u32>,
        from: Address,
        from_region: In<CopyRegion>,
        from_pitch: Argument<u32>,
        from_slice_pitch: Argument<u32>,
    ) {
        to.check()?;
        from.check()?;
        let to = Region::new(to, to_region, to_pitch, to_slice_pitch)?;
        let from = Region::new(from, from_region, from_pitch, from_slice_pitch)?;
        Ok(Work::copy_region(to, from))
    }

    /// `zeCommandListAppendBarrier` (ze_api.h).
    barrier(list) {
        Ok(Work::nothing())
    }

    /// `zeCommandListAppendMemoryRangesBarrier` (ze_api.h). Equal to a barrier, whatever the ranges.
    memory_ranges_barrier(list, range_count: Argument<u32>, sizes: In<usize>, ranges: In<Address>) {
        sizes.array(range_count)?;
        ranges.array(range_count)?;
        Ok(Work::nothing())
    }

    /// `zeCommandListAppendWriteGlobalTimestamp` (ze_api.h).
    write_global_timestamp(list, to: Address) {
        to.check()?;
        Ok(Work::timestamp(to))
    }

    /// `zeCommandListAppendQueryKernelTimestamps` (ze_api.h). Without offsets the results follow one another.
    query_kernel_timestamps(list, count: Argument<u32>, events: In<Handle<Event>>, to: Address, offsets: In<usize>) {
        events.check()?;
        to.check()?;
        Work::event_timestamps(to, events, offsets, count)
    }
}

fn copy(to: Address, from: Address, length: Argument<usize>) -> Outcome<Work> {
    to.check()?;
    from.check()?;
    Ok(Work::copy(to, from, length))
}

fn fill(
    list: &CommandList,
    to: Address,
    pattern: In<u8>,
    pattern_size: Argument<usize>,
    length: Argument<usize>,
) -> Outcome<Work> {
    to.check()?;
    list.check_pattern(pattern_size.value())?;
    Work::fill(to, pattern, pattern_size, length)
}

/// `zeCommandListAppendSignalEvent` (ze_api.h).
pub extern "C" fn signal_event(list: Handle<CommandList>, event: Handle<Event>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        event.get()?;
        append_without_waits(&list, Work::nothing(), event)
    })
}

/// `zeCommandListAppendWaitOnEvents` (ze_api.h).
pub extern "C" fn wait_on_events(
    list: Handle<CommandList>,
    count: Argument<u32>,
    events: In<Handle<Event>>,
) -> ZeResult {
    call(|| {
        let list = list.get()?;
        events.check()?;
        append(&list, Work::nothing(), Handle::NULL, count, events)
    })
}

/// `zeCommandListAppendEventReset` (ze_api.h). `INVALID_ARGUMENT` for counter-based events.
pub extern "C" fn event_reset(list: Handle<CommandList>, event: Handle<Event>) -> ZeResult {
    call(|| {
        let list = list.get()?;
        let event = event.get()?;
        event.expect_flag()?;
        append_without_waits(&list, Work::reset(event), Handle::NULL)
    })
}

/// `zeCommandListAppendMemoryPrefetch` (ze_api.h). A hint without effect: no memory moves.
pub extern "C" fn memory_prefetch(list: Handle<CommandList>, pointer: Address, _size: usize) -> ZeResult {
    call(|| {
        let list = list.get()?;
        pointer.check()?;
        append_without_waits(&list, Work::nothing(), Handle::NULL)
    })
}

/// `zeCommandListAppendMemAdvise` (ze_api.h). A hint without effect.
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
        append_without_waits(&list, Work::nothing(), Handle::NULL)
    })
}

/// Appends work with the events to wait for before it and to signal after it.
pub(super) fn append(
    list: &Arc<CommandList>,
    work: Work,
    signal: Handle<Event>,
    wait_count: Argument<u32>,
    waits: In<Handle<Event>>,
) -> Outcome {
    let (waits, signals) = events(signal, wait_count, waits)?;
    list.append(Command { work, waits, signals })
}

/// The events to wait for and to signal, as the append calls take them: `INVALID_SIZE` for a count without an array.
pub(super) fn events(
    signal: Handle<Event>,
    wait_count: Argument<u32>,
    waits: In<Handle<Event>>,
) -> Outcome<(Vec<Wait>, Option<Arc<Event>>)> {
    if wait_count.value() > 0 && waits.is_null() {
        return Err(ZeResult::INVALID_SIZE);
    }
    let waits: Outcome<_> = waits.each_object(wait_count)?.map(|event| event.map(Wait::new)).collect();
    Ok((waits?, signal.get_optional()?))
}

fn append_without_waits(list: &Arc<CommandList>, work: Work, signal: Handle<Event>) -> Outcome {
    list.append(Command { work, waits: Vec::new(), signals: signal.get_optional()? })
}
