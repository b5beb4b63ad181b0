//! Shared events: an event of the adapter around an event of the driver.
//!
//! Where the adapter can make such an event, it makes and ends it. Elsewhere the adapter makes its event around one
//! of the driver (`urEventCreateWithNativeHandle`), which we signal ([`signal`]) and end. Must signal or end no event
//! of the adapter's own.

use urscope_schema::api::{
    Function, UrResult,
    constants::{UR_EXP_EVENT_FLAG_ENABLE_PROFILING, UR_EXP_EVENT_FLAG_IPC_EXP, UR_EXP_EVENT_FLAGS_MASK},
    role::{Context, Data, DataSize, Desc, Device, Event, InOutEvent, OpenedData, OutData, OutDataSize, OutObject},
};

use super::{
    LevelZero,
    driver::{Driver, IpcHandle, ZeHandle, driver},
    fetch::Process,
    handle_data::{HandleData, Kind},
    issued::{Contents, Issued},
    opening, result,
    signal::{self, Barrier, Place},
};
use crate::{
    backend::adapter,
    raw::{
        args::{
            Arg,
            caller::{receive, with_data},
        },
        fork_reset::ForkReset,
        hash_map::HashMap,
        mutex::Mutex,
    },
};

/// An event that we made or opened, and the driver's event behind it; `NULL` if that is the adapter's alone to deal
/// with.
#[derive(Clone, Copy)]
struct Shared {
    native: ZeHandle,
    origin: Origin,
    /// Where we signal it; `None` if the adapter's queues do.
    signalled: Option<Place>,
    references: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It was made here, to be signalled again but not to be shared.
    Plain,
    /// It was made here, to be shared.
    Shared,
    /// It was opened.
    Opened,
}

static SHARED: ForkReset<Mutex<HashMap<usize, Shared>>> = ForkReset::new(Mutex::default);

static ISSUED: Issued<()> = Issued::new(Kind::Event);

/// In a forked child, which has none of its parent's events.
pub(crate) fn after_fork_in_child() {
    SHARED.reset(Mutex::default());
    ISSUED.after_fork_in_child();
}

/// `urEventCreateExp`
pub(crate) fn create(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    desc: Arg<Desc>,
    out: Arg<OutObject>,
) -> Result<(), UrResult> {
    result::not_null(context)?;
    result::not_null(device)?;
    result::not_null(desc)?;
    let flags = opening::creation_flags((context, device), desc, out, UR_EXP_EVENT_FLAGS_MASK)?;
    let (shared, profiled) = (flags & UR_EXP_EVENT_FLAG_IPC_EXP != 0, flags & UR_EXP_EVENT_FLAG_ENABLE_PROFILING != 0);
    if shared && profiled {
        return Err(UrResult::INVALID_VALUE);
    }
    supported(at)?;
    if adapter::has(at.via, Function::urEventCreateExp) {
        if !shared {
            return result::done(adapter::urEventCreateExp(at.via)(context, device, desc, out));
        }
        let (event, native) = made_by_adapter(at, context, device, desc).ok_or(UrResult::UNSUPPORTED_FEATURE)?;
        keep(event, native, Origin::Shared, None, out);
        return Ok(());
    }
    if profiled {
        return Err(UrResult::UNSUPPORTED_FEATURE);
    }
    let (ze_context, ze_device) = (at.context(context)?, at.device(device)?);
    let native = driver().make_event(ze_context, ze_device, shared)?;
    let origin = if shared { Origin::Shared } else { Origin::Plain };
    wrap(at, context, native, origin, Place::new(ze_context, ze_device), out)
        .inspect_err(|_| driver().end_event(native))
}

/// Fails where the adapter's queues could not wait for such an event.
fn supported(at: LevelZero) -> Result<(), UrResult> {
    if at.shares_events() { Ok(()) } else { Err(UrResult::UNSUPPORTED_FEATURE) }
}

/// Makes the adapter's event around the driver's, and gives it out.
fn wrap(
    at: LevelZero,
    context: Arg<Context>,
    native: ZeHandle,
    origin: Origin,
    signalled: Place,
    out: Arg<OutObject>,
) -> Result<(), UrResult> {
    let event = at.native()?.event_around(context, native)?;
    keep(event, native, origin, Some(signalled), out);
    Ok(())
}

/// Gives an event out, and remembers it.
fn keep(event: Arg<Event>, native: ZeHandle, origin: Origin, signalled: Option<Place>, out: Arg<OutObject>) {
    let word = event.get().0;
    SHARED.get().lock().insert(word, Shared { native, origin, signalled, references: 1 });
    out.write(word);
}

/// `urEnqueueEventsWaitWithBarrierExt`
pub(crate) fn enqueue(at: LevelZero, barrier: Barrier, event: Arg<InOutEvent>) -> Result<(), UrResult> {
    let known = event.read().and_then(|asked| SHARED.get().lock().get(&asked).copied());
    match known {
        Some(Shared { native, signalled: Some(place), .. }) => signal::behind(at, barrier, event, native, place),
        _ => barrier.enqueue(at, event),
    }
}

/// A shareable event that the adapter itself makes; `None` where it cannot.
fn made_by_adapter(
    at: LevelZero,
    context: Arg<Context>,
    device: Arg<Device>,
    desc: Arg<Desc>,
) -> Option<(Arg<Event>, ZeHandle)> {
    let event = receive::<Event>(|out| adapter::urEventCreateExp(at.via)(context, device, desc, out)).ok()??;
    let behind = at.native().and_then(|native| native.event_behind(event));
    if behind.is_err() {
        let _ = adapter::urEventRelease(at.via)(event);
    }
    Some((event, behind.ok()?))
}

/// An event that the adapter itself opens from the driver's handle, and closes; `None` where it cannot.
fn opened_by_adapter(at: LevelZero, context: Arg<Context>, handle_data: &HandleData) -> Option<Arg<Event>> {
    let mut bytes = handle_data.native;
    let open = adapter::urIPCOpenEventHandleExp(at.via);
    with_data(&mut bytes, |data, size| receive::<Event>(|out| open(context, data, size, out))).ok()?
}

/// `urEventRetain`
pub(crate) fn retain(at: LevelZero, event: Arg<Event>) -> Result<(), UrResult> {
    result::done(adapter::urEventRetain(at.via)(event))?;
    if let Some(shared) = SHARED.get().lock().get_mut(&event.get().0) {
        shared.references += 1;
    }
    Ok(())
}

/// `urEventRelease`
pub(crate) fn release(at: LevelZero, event: Arg<Event>) -> Result<(), UrResult> {
    // Forgotten before it is released, because its address may be used again afterwards.
    let last = {
        let mut all = SHARED.get().lock();
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
    if let Some(Shared { native, origin, signalled: Some(place), .. }) = last {
        signal::end(place, native, if origin == Origin::Opened { Driver::close_event } else { Driver::end_event });
    }
    Ok(())
}

/// `urIPCGetEventHandleExp`
pub(crate) fn get(
    at: LevelZero,
    event: Arg<Event>,
    data: Arg<OutData>,
    size: Arg<OutDataSize>,
) -> Result<(), UrResult> {
    result::not_null(event)?;
    result::not_null(data)?;
    result::not_null(size)?;
    supported(at)?;
    let known = SHARED.get().lock().get(&event.get().0).copied();
    let shared = known.filter(|shared| shared.origin == Origin::Shared).ok_or(UrResult::INVALID_EVENT)?;
    ISSUED.answer_get(data, size, || {
        let handle = driver().export_event(shared.native)?;
        Ok((Contents { size: 0, offset: 0, descriptor: -1, native: handle.0 }, ()))
    })
}

/// `urIPCPutEventHandleExp`
pub(crate) fn put(at: LevelZero, context: Arg<Context>, data: Arg<Data>) -> Result<(), UrResult> {
    result::not_null(context)?;
    result::not_null(data)?;
    supported(at)?;
    ISSUED.take(data.get().0).map(drop)
}

/// `urIPCOpenEventHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Arg<Context>,
    data: Arg<OpenedData>,
    size: Arg<DataSize>,
    out: Arg<OutObject>,
) -> Result<(), UrResult> {
    let (ze_context, (), handle_data) =
        opening::opened_data(at, context, (data, size), out, Kind::Event, || supported(at))?;
    Process::of(&handle_data).check_access()?;
    if let Some(event) = opened_by_adapter(at, context, &handle_data) {
        keep(event, ZeHandle::NULL, Origin::Opened, None, out);
        return Ok(());
    }
    let place = Place::new(ze_context, at.native()?.first_device(context)?);
    let native = driver().open_event(ze_context, IpcHandle(handle_data.native)).map_err(result::of_import)?;
    wrap(at, context, native, Origin::Opened, place, out).inspect_err(|_| driver().close_event(native))
}
