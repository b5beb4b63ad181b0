//! Shared events: an event of the adapter that wraps one of the driver.
//!
//! An adapter that can make shareable events makes and ends them. For others, this module makes, signals ([`signal`])
//! and ends an event of the driver, which the adapter wraps (`urEventCreateWithNativeHandle`). It must not signal or
//! end events of the adapter.

use urscope_schema::api::{
    Function, ResultCode,
    role::{Context, Data, DataSize, Desc, Device, Event, InOutEvent, OpenedData, OutData, OutDataSize, OutObject},
    unified_runtime::constants::{
        UR_EXP_EVENT_FLAG_ENABLE_PROFILING, UR_EXP_EVENT_FLAG_IPC_EXP, UR_EXP_EVENT_FLAGS_MASK,
    },
};

use super::driver::{Driver, IpcHandle, ZeHandle, driver};
use super::issued_handles::{Contents, IssuedHandles};
use super::signal::{self, Barrier, SignalDevice};
use super::{LevelZero, fetch::Process, handle_data::HandleData, opening, result};
use crate::backend::{Family, adapter};
use crate::raw::args::caller::{receive, with_data};
use crate::raw::{args::Arg, memory::hash_map::HashMap, processes::fork_reset::ForkReset, threads::mutex::Mutex};

/// An event that was made or opened here, with the driver's event; `NULL` if the adapter manages that.
#[derive(Clone, Copy)]
struct SharedEvent {
    native: ZeHandle,
    origin: Origin,
    /// The device that signals it here; `None` if the adapter's queues do.
    signal_device: Option<SignalDevice>,
    references: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Made here, to be signalled again but not shared.
    Unshared,
    /// Made here, to be shared.
    Shared,
    Opened,
}

static EVENTS: ForkReset<Mutex<HashMap<usize, SharedEvent>>> = ForkReset::new(Mutex::default);

static ISSUED_HANDLES: IssuedHandles<()> = IssuedHandles::new(Family::Event);

/// Forgets the parent's events.
pub(crate) fn after_fork_in_child() {
    EVENTS.reset(Mutex::default());
    ISSUED_HANDLES.after_fork_in_child();
}

/// `urEventCreateExp`
pub(crate) fn create(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    desc: Arg<Desc>,
    out: Arg<OutObject>,
) -> Result<(), ResultCode> {
    result::not_null(context)?;
    result::not_null(device)?;
    result::not_null(desc)?;
    let flags = opening::creation_flags(context, device, desc, out, UR_EXP_EVENT_FLAGS_MASK)?;
    let shared = flags & UR_EXP_EVENT_FLAG_IPC_EXP != 0;
    let profiled = flags & UR_EXP_EVENT_FLAG_ENABLE_PROFILING != 0;
    if shared && profiled {
        return Err(ResultCode::INVALID_VALUE);
    }
    check_support(at)?;
    if adapter::has(at.via, Function::urEventCreateExp) {
        if !shared {
            return result::done(adapter::urEventCreateExp(at.via)(context, device, desc, out));
        }
        let (event, native) = create_in_adapter(at, context, device, desc).ok_or(ResultCode::UNSUPPORTED_FEATURE)?;
        register(event, native, Origin::Shared, None, out);
        return Ok(());
    }
    if profiled {
        return Err(ResultCode::UNSUPPORTED_FEATURE);
    }
    let ze_context = at.context(context)?;
    let ze_device = at.device(device)?;
    let native = driver().make_event(ze_context, ze_device, shared)?;
    let origin = if shared { Origin::Shared } else { Origin::Unshared };
    wrap(at, context, native, origin, SignalDevice::new(ze_context, ze_device), out)
        .inspect_err(|_| driver().end_event(native))
}

/// Fails if the adapter's queues cannot wait for shared events.
fn check_support(at: LevelZero) -> Result<(), ResultCode> {
    if at.shares_events() { Ok(()) } else { Err(ResultCode::UNSUPPORTED_FEATURE) }
}

/// Makes the adapter's event that wraps the driver's, and returns it in `out`.
fn wrap(
    at: LevelZero,
    context: Arg<Context>,
    native: ZeHandle,
    origin: Origin,
    signal_device: SignalDevice,
    out: Arg<OutObject>,
) -> Result<(), ResultCode> {
    let event = at.native()?.wrap_driver_event(context, native)?;
    register(event, native, origin, Some(signal_device), out);
    Ok(())
}

/// Registers an event and returns it in `out`.
fn register(
    event: Arg<Event>,
    native: ZeHandle,
    origin: Origin,
    signal_device: Option<SignalDevice>,
    out: Arg<OutObject>,
) {
    let word = event.get().0;
    EVENTS.get().lock().insert(word, SharedEvent { native, origin, signal_device, references: 1 });
    out.write(word);
}

/// `urEnqueueEventsWaitWithBarrierExt`
pub(crate) fn enqueue(at: LevelZero, barrier: Barrier, event: Arg<InOutEvent>) -> Result<(), ResultCode> {
    let known = event.read().and_then(|asked| EVENTS.get().lock().get(&asked).copied());
    match known {
        Some(SharedEvent { native, signal_device: Some(signal_device), .. }) => {
            signal::signal_after(at, barrier, event, native, signal_device)
        }
        _ => barrier.enqueue(at, event),
    }
}

/// A shareable event of the adapter's; `None` if it cannot make one.
fn create_in_adapter(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    desc: Arg<Desc>,
) -> Option<(Arg<Event>, ZeHandle)> {
    let event = receive::<Event>(|out| adapter::urEventCreateExp(at.via)(context, device, desc, out)).ok()??;
    let driver_event = at.native().and_then(|native| native.driver_event(event));
    if driver_event.is_err() {
        let _ = adapter::urEventRelease(at.via)(event);
    }
    Some((event, driver_event.ok()?))
}

/// An event that the adapter opens from the driver's handle, and closes; `None` if it cannot.
fn open_in_adapter(at: LevelZero, context: Arg<Context>, handle_data: &HandleData) -> Option<Arg<Event>> {
    let mut bytes = handle_data.native;
    let open = adapter::urIPCOpenEventHandleExp(at.via);
    with_data(&mut bytes, |data, size| receive::<Event>(|out| open(context, data, size, out))).ok()?
}

/// `urEventRetain`
pub(crate) fn retain(at: LevelZero, event: Arg<Event>) -> Result<(), ResultCode> {
    result::done(adapter::urEventRetain(at.via)(event))?;
    if let Some(shared) = EVENTS.get().lock().get_mut(&event.get().0) {
        shared.references += 1;
    }
    Ok(())
}

/// `urEventRelease`
pub(crate) fn release(at: LevelZero, event: Arg<Event>) -> Result<(), ResultCode> {
    // Removed before it is released, because its address may be reused afterwards.
    let last = {
        let mut all = EVENTS.get().lock();
        if let Some(shared) = all.get_mut(&event.get().0) {
            shared.references -= 1;
        }
        if all.get(&event.get().0).is_some_and(|shared| shared.references == 0) {
            all.remove(&event.get().0)
        } else {
            None
        }
    };
    result::done(adapter::urEventRelease(at.via)(event))?;
    if let Some(SharedEvent { native, origin, signal_device: Some(signal_device), .. }) = last {
        signal::end(
            signal_device,
            native,
            if origin == Origin::Opened { Driver::close_event } else { Driver::end_event },
        );
    }
    Ok(())
}

/// `urIPCGetEventHandleExp`
pub(crate) fn get(
    at: LevelZero,
    event: Arg<Event>,
    data: Arg<OutData>,
    size: Arg<OutDataSize>,
) -> Result<(), ResultCode> {
    result::not_null(event)?;
    result::not_null(data)?;
    result::not_null(size)?;
    check_support(at)?;
    let known = EVENTS.get().lock().get(&event.get().0).copied();
    let shared = known.filter(|shared| shared.origin == Origin::Shared).ok_or(ResultCode::INVALID_EVENT)?;
    ISSUED_HANDLES.answer_get(data, size, || {
        let handle = driver().export_event(shared.native)?;
        Ok((Contents { size: 0, offset: 0, descriptor: -1, native: handle.0 }, ()))
    })
}

/// `urIPCPutEventHandleExp`
pub(crate) fn put(at: LevelZero, context: Arg<Context>, data: Arg<Data>) -> Result<(), ResultCode> {
    result::not_null(context)?;
    result::not_null(data)?;
    check_support(at)?;
    ISSUED_HANDLES.take(data.get().0).map(drop)
}

/// `urIPCOpenEventHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Arg<Context>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    out: Arg<OutObject>,
) -> Result<(), ResultCode> {
    let (ze_context, (), handle_data) =
        opening::decode_opened(at, context, data, size, out, Family::Event, || check_support(at))?;
    Process::producer_of(&handle_data).check_access()?;
    if let Some(event) = open_in_adapter(at, context, &handle_data) {
        register(event, ZeHandle::NULL, Origin::Opened, None, out);
        return Ok(());
    }
    let signal_device = SignalDevice::new(ze_context, at.native()?.first_device(context)?);
    let native = driver().open_event(ze_context, IpcHandle(handle_data.native)).map_err(result::of_import)?;
    wrap(at, context, native, Origin::Opened, signal_device, out).inspect_err(|_| driver().close_event(native))
}
