//! Events. Each is a counter-based event of the software device, which is what an event of CUDA is: each record counts, and
//! a wait is for the records before it.

use parking_lot::Mutex;
use urscope_device::layout::{EventCounterBasedDesc, IpcHandle, KernelTimestampResult};

use crate::arguments::Out;
use crate::context::current_device;
use crate::exports::functions;
use crate::ipc::{check_producer, refusal};
use crate::level_zero::{
    Handle, driver, zeCommandListAppendSignalEvent, zeCommandListAppendWaitOnEvents, zeEventCounterBasedCloseIpcHandle,
    zeEventCounterBasedCreate, zeEventCounterBasedGetIpcHandle, zeEventCounterBasedOpenIpcHandle, zeEventDestroy,
    zeEventHostSynchronize, zeEventQueryKernelTimestamp, zeEventQueryStatus, zeroed,
};
use crate::objects::Objects;
use crate::result::{Code, Outcome};
use crate::stream;

/// `CU_EVENT_DISABLE_TIMING` and `CU_EVENT_INTERPROCESS`.
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
/// Of Level Zero: for immediate lists, shared with other processes, with timestamps of the host's clock.
const IMMEDIATE: u32 = 1;
const SHARED: u32 = 1 << 3;
const TIMESTAMPS: u32 = 1 << 5;

#[derive(Clone, Copy)]
struct Event {
    made: Handle,
    flags: u32,
    is_opened: bool,
}

static EVENTS: Objects<Event> = Objects::new();

/// Events that were destroyed before they had completed. A stream may still wait for one, which the software device
/// would end.
static UNFINISHED: Mutex<Vec<Event>> = Mutex::new(Vec::new());

/// Ends the events of `UNFINISHED` that have completed.
fn tidy() {
    let is_done = |event: &mut Event| zeEventQueryStatus(event.made) != Err(Code::NOT_READY);
    for Event { made, is_opened, .. } in UNFINISHED.lock().extract_if(.., is_done) {
        // Neither can fail for a live event.
        let _ = if is_opened { zeEventCounterBasedCloseIpcHandle(made) } else { zeEventDestroy(made) };
    }
}

fn record(event: usize, stream: usize) -> Outcome {
    let event = EVENTS.get(event)?;
    stream::of(stream)?.submit(|list| zeCommandListAppendSignalEvent(list, event.made))
}

/// When the last recorded work of an event had completed, in nanoseconds: `INVALID_HANDLE` for one without timing.
fn completed(event: usize) -> Outcome<u64> {
    let event = EVENTS.get(event)?;
    if event.flags & DISABLE_TIMING != 0 {
        return Err(Code::INVALID_HANDLE);
    }
    zeEventQueryStatus(event.made)?;
    // SAFETY: it consists of numbers.
    let mut times: KernelTimestampResult = unsafe { std::mem::zeroed() };
    zeEventQueryKernelTimestamp(event.made, &mut times)?;
    Ok(times.global.kernel_end)
}

fn elapsed(milliseconds: Out<f32>, from: usize, to: usize) -> Outcome {
    driver()?;
    milliseconds.write((completed(to)? as i64 - completed(from)? as i64) as f32 / 1e6)
}

functions! {
    2000 "cuEventCreate" cuEventCreate(event: Out<usize>, flags: u32) {
        let device = current_device()?;
        event.check()?;
        let is_shared = flags & INTERPROCESS != 0;
        if flags & !7 != 0 || (is_shared && flags & DISABLE_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        tidy();
        let extra = if is_shared { SHARED } else { TIMESTAMPS };
        let desc = EventCounterBasedDesc { flags: IMMEDIATE | extra, ..zeroed() };
        let mut made = 0;
        zeEventCounterBasedCreate(driver()?.context, device, &desc, &mut made)?;
        event.write(EVENTS.add(Event { made, flags, is_opened: false }))
    }
    4000 "cuEventDestroy" cuEventDestroy_v2(event: usize) {
        driver()?;
        // The driver reads the memory of an event that there is not, and may end the process.
        UNFINISHED.lock().push(*EVENTS.remove(event)?);
        tidy();
        Ok(())
    }
    2000 "cuEventRecord" cuEventRecord(event: usize, stream: usize) / cuEventRecord_ptsz {
        driver()?;
        record(event, stream)
    }
    11010 "cuEventRecordWithFlags" cuEventRecordWithFlags(
        event: usize, stream: usize, _flags: u32,
    ) / cuEventRecordWithFlags_ptsz {
        driver()?;
        record(event, stream)
    }
    2000 "cuEventQuery" cuEventQuery(event: usize) {
        driver()?;
        zeEventQueryStatus(EVENTS.get(event)?.made)
    }
    2000 "cuEventSynchronize" cuEventSynchronize(event: usize) {
        driver()?;
        zeEventHostSynchronize(EVENTS.get(event)?.made, u64::MAX)
    }
    2000 "cuEventElapsedTime" cuEventElapsedTime(milliseconds: Out<f32>, from: usize, to: usize) {
        elapsed(milliseconds, from, to)
    }
    12080 "cuEventElapsedTime" cuEventElapsedTime_v2(milliseconds: Out<f32>, from: usize, to: usize) {
        elapsed(milliseconds, from, to)
    }
    3020 "cuStreamWaitEvent" cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) / cuStreamWaitEvent_ptsz {
        driver()?;
        let event = EVENTS.get(event)?;
        stream::of(stream)?.submit(|list| zeCommandListAppendWaitOnEvents(list, 1, &event.made))
    }
    4010 "cuIpcGetEventHandle" cuIpcGetEventHandle(handle: Out<IpcHandle>, event: usize) {
        driver()?;
        handle.check()?;
        let event = EVENTS.get(event)?;
        let mut bytes = IpcHandle { data: [0; 64] };
        zeEventCounterBasedGetIpcHandle(event.made, &mut bytes).map_err(|_| Code::INVALID_HANDLE)?;
        handle.write(bytes)
    }
    4010 "cuIpcOpenEventHandle" cuIpcOpenEventHandle(event: Out<usize>, handle: IpcHandle) {
        current_device()?;
        event.check()?;
        check_producer(&handle)?;
        let mut opened = 0;
        zeEventCounterBasedOpenIpcHandle(driver()?.context, handle, &mut opened).map_err(|_| refusal(&handle))?;
        event.write(EVENTS.add(Event { made: opened, flags: DISABLE_TIMING | INTERPROCESS, is_opened: true }))
    }
}
