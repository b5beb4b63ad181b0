//! Events that are shared: events of the adapter's around driver's events of ours.
//!
//! Where the adapter can make such an event, it does, and ends it; elsewhere it makes its event around the driver's
//! (`urEventCreateWithNativeHandle`), the signals are ours ([`signal`]), and so is the end of the driver's event. What we
//! know of an event stands beside, by its handle.

use std::collections::HashMap;

use parking_lot::Mutex;
use urscope_schema::api::{
    Function, UrResult,
    constants::{UR_EXP_EVENT_FLAG_ENABLE_PROFILING, UR_EXP_EVENT_FLAG_IPC_EXP},
    role::{Context, Data, DataSize, Desc, Device, Event, InOutEvent, OutObject},
};

use super::{
    LevelZero, caller,
    driver::{Driver, IpcHandle, ZeHandle, driver},
    fetch::Process,
    handle_data::{HandleData, Kind},
    issued::{Contents, Issued},
    result,
    signal::{self, Barrier, Place},
};
use crate::{backend::adapter, raw::fork_reset::ForkReset};

/// `ur_exp_event_desc_t`
#[repr(C)]
struct Description {
    stype: u32,
    next: usize,
    flags: u32,
}

/// An event that we made or opened, and the driver's event behind it; 0 if that is the adapter's alone to deal with.
#[derive(Clone, Copy)]
struct Shared {
    native: usize,
    origin: Origin,
    /// Where we signal it; nothing if the adapter's queues do.
    signalled: Option<Place>,
    references: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It was made here, to be used again and no more.
    Plain,
    /// It was made here, to be shared.
    Shared,
    /// It was opened.
    Opened,
}

static SHARED: ForkReset<Mutex<HashMap<usize, Shared>>> = ForkReset::new(Mutex::default);

static ISSUED: Issued<()> = Issued::new(Kind::Event);

/// In a forked child.
pub(crate) fn after_fork_in_child() {
    SHARED.reset(Mutex::default());
    ISSUED.forget();
}

/// `urEventCreateExp`
pub(crate) fn create(
    at: LevelZero,
    context: Context,
    device: Device,
    desc: Desc,
    out: OutObject,
) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::handle(device.0)?;
    result::pointer(desc.0)?;
    result::pointer(out.0)?;
    // SAFETY: the caller says that a `ur_exp_event_desc_t` stands there.
    let flags = unsafe { (*std::ptr::with_exposed_provenance::<Description>(desc.0)).flags };
    if flags & !(UR_EXP_EVENT_FLAG_ENABLE_PROFILING | UR_EXP_EVENT_FLAG_IPC_EXP) != 0 {
        return Err(UrResult::INVALID_ENUMERATION);
    }
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
    let (ze_context, ze_device) = (at.context(context.0)?, at.device(device.0)?);
    let native = driver().make_event(ze_context, ze_device, shared)?;
    let origin = if shared { Origin::Shared } else { Origin::Plain };
    wrap(at, context, native, origin, Place::new(ze_context, ze_device), out)
        .inspect_err(|_| driver().end_event(native))
}

/// Refuses what the adapter's queues could not wait for.
fn supported(at: LevelZero) -> Result<(), UrResult> {
    if at.shares_events() { Ok(()) } else { Err(UrResult::UNSUPPORTED_FEATURE) }
}

/// Makes the adapter's event around the driver's.
fn wrap(
    at: LevelZero,
    context: Context,
    native: ZeHandle,
    origin: Origin,
    signalled: Place,
    out: OutObject,
) -> Result<(), UrResult> {
    let event = at.native()?.event_around(context.0, native)?;
    keep(event, native, origin, Some(signalled), out);
    Ok(())
}

/// Hands an event out, and knows it again.
fn keep(event: usize, native: ZeHandle, origin: Origin, signalled: Option<Place>, out: OutObject) {
    let shared = Shared { native: native.expose_provenance(), origin, signalled, references: 1 };
    SHARED.get().lock().insert(event, shared);
    caller::give(out.0, event);
}

/// `urEnqueueEventsWaitWithBarrierExt`
pub(crate) fn enqueue(at: LevelZero, barrier: Barrier, event: InOutEvent) -> Result<(), UrResult> {
    // SAFETY: the caller says that there is a place for an event, or hands in null. An older release calls it one for the
    // answer only, so that what stands there may be anything: it is compared and nothing else.
    let asked = unsafe { std::ptr::with_exposed_provenance::<usize>(event.0).as_ref() }.copied();
    let known = asked.and_then(|asked| Some((asked, SHARED.get().lock().get(&asked).copied()?)));
    match known {
        Some((asked, Shared { native, signalled: Some(place), .. })) => {
            signal::behind(at, barrier, asked, std::ptr::with_exposed_provenance_mut(native), place)
        }
        _ => barrier.enqueue(at, event),
    }
}

/// An event as the adapter itself makes them to be shared; nothing where it cannot.
fn made_by_adapter(at: LevelZero, context: Context, device: Device, desc: Desc) -> Option<(usize, ZeHandle)> {
    let mut event = 0_usize;
    let place = OutObject((&raw mut event).expose_provenance());
    if !adapter::urEventCreateExp(at.via)(context, device, desc, place).is_success() {
        return None;
    }
    // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
    let event = unsafe { (&raw const event).read_volatile() };
    let behind = at.native().and_then(|native| native.event_behind(event));
    if behind.is_err() {
        let _ = adapter::urEventRelease(at.via)(Event(event));
    }
    Some((event, behind.ok()?))
}

/// An event that the adapter itself opened from the driver's handle, and closes; nothing where it cannot.
fn opened_by_adapter(at: LevelZero, context: Context, sealed: &HandleData) -> Option<usize> {
    let mut event = 0_usize;
    let place = OutObject((&raw mut event).expose_provenance());
    let data = Data(sealed.native.as_ptr().expose_provenance());
    let size = DataSize(sealed.native.len());
    if !adapter::urIPCOpenEventHandleExp(at.via)(context, data, size, place).is_success() {
        return None;
    }
    // SAFETY: a live variable, read as volatile because the adapter wrote to it through its address.
    Some(unsafe { (&raw const event).read_volatile() }).filter(|event| *event != 0)
}

/// `urEventRetain`
pub(crate) fn retain(at: LevelZero, event: Event) -> Result<(), UrResult> {
    result::done(adapter::urEventRetain(at.via)(event))?;
    if let Some(shared) = SHARED.get().lock().get_mut(&event.0) {
        shared.references += 1;
    }
    Ok(())
}

/// `urEventRelease`
pub(crate) fn release(at: LevelZero, event: Event) -> Result<(), UrResult> {
    // Forgotten first: once it is released, its address may be another one's.
    let last = {
        let mut all = SHARED.get().lock();
        if let Some(shared) = all.get_mut(&event.0) {
            shared.references -= 1;
        }
        if all.get(&event.0).is_some_and(|shared| shared.references == 0) { all.remove(&event.0) } else { None }
    };
    result::done(adapter::urEventRelease(at.via)(event))?;
    if let Some(Shared { native, origin, signalled: Some(place), .. }) = last {
        signal::end(place, native, if origin == Origin::Opened { Driver::close_event } else { Driver::end_event });
    }
    Ok(())
}

/// `urIPCGetEventHandleExp`
pub(crate) fn get(at: LevelZero, event: Event, data: usize, size: usize) -> Result<(), UrResult> {
    result::handle(event.0)?;
    result::pointer(data)?;
    result::pointer(size)?;
    supported(at)?;
    let known = SHARED.get().lock().get(&event.0).copied();
    let shared = known.filter(|shared| shared.origin == Origin::Shared).ok_or(UrResult::INVALID_EVENT)?;
    ISSUED.give(data, size, || {
        let handle = driver().export_event(std::ptr::with_exposed_provenance_mut(shared.native))?;
        Ok((Contents { size: 0, offset: 0, descriptor: -1, native: handle.0 }, ()))
    })
}

/// `urIPCPutEventHandleExp`
pub(crate) fn put(at: LevelZero, context: Context, data: Data) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::pointer(data.0)?;
    supported(at)?;
    ISSUED.take(data.0)
}

/// `urIPCOpenEventHandleExp`
pub(crate) fn open(
    at: LevelZero,
    context: Context,
    data: Data,
    size: DataSize,
    out: OutObject,
) -> Result<(), UrResult> {
    result::pointer(data.0)?;
    result::pointer(out.0)?;
    let ze_context = at.context(context.0)?;
    supported(at)?;
    let bytes = caller::copy(data.0, size.0)?;
    let sealed = match HandleData::decode(&bytes) {
        Ok(sealed) if sealed.kind == Kind::Event => sealed,
        _ => return Err(UrResult::INVALID_VALUE),
    };
    Process { pid: sealed.pid, started: sealed.started }.may_be_asked()?;
    if let Some(event) = opened_by_adapter(at, context, &sealed) {
        keep(event, std::ptr::null_mut(), Origin::Opened, None, out);
        return Ok(());
    }
    let place = Place::new(ze_context, at.native()?.first_device(context.0)?);
    let native = driver().open_event(ze_context, IpcHandle(sealed.native)).map_err(result::of_import)?;
    wrap(at, context, native, Origin::Opened, place, out).inspect_err(|_| driver().close_event(native))
}
