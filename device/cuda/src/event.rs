//! Events. Each is a counter-based event of the software device, which is what an event of CUDA is: each record counts,
//! and a wait is for the records before it.

use std::sync::Arc;

use urscope_device::layout::IpcHandle;

use crate::arguments::Out;
use crate::context::{current_device, initialised};
use crate::exports::functions;
use crate::ipc::{check_producer, refusal};
use crate::objects::Objects;
use crate::result::{Code, Outcome};
use crate::stream;

/// `CU_EVENT_DISABLE_TIMING` and `CU_EVENT_INTERPROCESS`.
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

struct Event {
    /// The commands that signal it or wait for it keep it, too.
    made: Arc<urscope_device::Event>,
    flags: u32,
}

static EVENTS: Objects<Event> = Objects::new();

/// Adds an event, and returns its handle.
fn add(made: urscope_device::Event, flags: u32) -> usize {
    EVENTS.add(Event { made: Arc::new(made), flags })
}

fn record(event: usize, stream: usize) -> Outcome {
    let event = EVENTS.get(event)?;
    stream::find(stream)?.submit(|commands| commands.signal(Arc::clone(&event.made)))
}

/// When the last recorded work of an event had completed, in nanoseconds: `INVALID_HANDLE` for one without timing.
fn completed(event: usize) -> Outcome<u64> {
    let event = EVENTS.get(event)?;
    if event.flags & DISABLE_TIMING != 0 {
        return Err(Code::INVALID_HANDLE);
    }
    event.made.completed_at().ok_or(Code::NOT_READY)
}

fn elapsed(milliseconds: Out<f32>, from: usize, to: usize) -> Outcome {
    initialised()?;
    milliseconds.write((completed(to)? as i64 - completed(from)? as i64) as f32 / 1e6)
}

functions! {
    2000 "cuEventCreate" cuEventCreate(event: Out<usize>, flags: u32) {
        current_device()?;
        event.check()?;
        let is_shared = flags & INTERPROCESS != 0;
        if flags & !7 != 0 || (is_shared && flags & DISABLE_TIMING == 0) {
            return Err(Code::INVALID_VALUE);
        }
        let made =
            if is_shared { urscope_device::Event::shared_counter()? } else { urscope_device::Event::counter() };
        event.write(add(made, flags))
    }
    4000 "cuEventDestroy" cuEventDestroy_v2(event: usize) {
        initialised()?;
        // The driver reads the memory of an event that there is not, and may end the process.
        EVENTS.remove(event).map(drop)
    }
    2000 "cuEventRecord" cuEventRecord(event: usize, stream: usize) / cuEventRecord_ptsz {
        initialised()?;
        record(event, stream)
    }
    11010 "cuEventRecordWithFlags" cuEventRecordWithFlags(
        event: usize, stream: usize, _flags: u32,
    ) / cuEventRecordWithFlags_ptsz {
        initialised()?;
        record(event, stream)
    }
    2000 "cuEventQuery" cuEventQuery(event: usize) {
        initialised()?;
        if EVENTS.get(event)?.made.is_signalled() { Ok(()) } else { Err(Code::NOT_READY) }
    }
    2000 "cuEventSynchronize" cuEventSynchronize(event: usize) {
        initialised()?;
        EVENTS.get(event)?.made.synchronize(u64::MAX)?;
        Ok(())
    }
    2000 "cuEventElapsedTime" cuEventElapsedTime(milliseconds: Out<f32>, from: usize, to: usize) {
        elapsed(milliseconds, from, to)
    }
    12080 "cuEventElapsedTime" cuEventElapsedTime_v2(milliseconds: Out<f32>, from: usize, to: usize) {
        elapsed(milliseconds, from, to)
    }
    3020 "cuStreamWaitEvent" cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) / cuStreamWaitEvent_ptsz {
        initialised()?;
        let event = EVENTS.get(event)?;
        stream::find(stream)?.submit(|commands| commands.wait_for(Arc::clone(&event.made)))
    }
    4010 "cuIpcGetEventHandle" cuIpcGetEventHandle(handle: Out<IpcHandle>, event: usize) {
        initialised()?;
        handle.check()?;
        handle.write(EVENTS.get(event)?.made.export().map_err(|_| Code::INVALID_HANDLE)?)
    }
    4010 "cuIpcOpenEventHandle" cuIpcOpenEventHandle(event: Out<usize>, handle: IpcHandle) {
        current_device()?;
        event.check()?;
        check_producer(&handle)?;
        let opened = urscope_device::Event::open(&handle).map_err(|_| refusal(&handle))?;
        event.write(add(opened, DISABLE_TIMING | INTERPROCESS))
    }
}
