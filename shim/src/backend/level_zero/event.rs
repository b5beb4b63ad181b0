//! Events that are shared: events of the adapter's around driver's events of ours.
//!
//! Where the adapter can make such an event, it does; elsewhere it makes its event around the driver's
//! (`urEventCreateWithNativeHandle`). What we know of it stands beside, by its handle. An event that was made here is the
//! adapter's to end, when its queues are done with it; one that we opened is closed by us, after its last release.

use std::collections::HashMap;

use parking_lot::Mutex;
use urscope_schema::api::{
    UrResult,
    role::{Context, Data, DataSize, Desc, Device, Event, OutObject},
};

use super::{
    LevelZero, caller,
    driver::{IpcHandle, ZeHandle, driver},
    fetch::Process,
    issued::{Issued, Said},
    result::{self, INVALID_ENUMERATION, INVALID_EVENT, INVALID_VALUE},
    seal::{Kind, Sealed},
};
use crate::{backend::adapter, raw::renewable::Renewable};

/// `UR_EXP_EVENT_FLAG_ENABLE_PROFILING`
const PROFILING: u32 = 1;
/// `UR_EXP_EVENT_FLAG_IPC_EXP`
const IPC: u32 = 2;

/// `ur_exp_event_desc_t`
#[repr(C)]
struct Description {
    stype: u32,
    next: usize,
    flags: u32,
}

/// An event that is shared, and the driver's event behind it; 0 if that is the adapter's alone to deal with.
#[derive(Clone, Copy)]
struct Shared {
    native: usize,
    opened: bool,
    references: u32,
}

static SHARED: Renewable<Mutex<HashMap<usize, Shared>>> = Renewable::new(Mutex::default);

static ISSUED: Issued<()> = Issued::new(Kind::Event);

/// In a forked child.
pub(crate) fn after_fork_in_child() {
    SHARED.renew(Mutex::default());
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
    if flags & !(PROFILING | IPC) != 0 {
        return Err(INVALID_ENUMERATION);
    }
    if flags & IPC == 0 {
        return result::done(adapter::urEventCreateExp(at.via)(context, device, desc, out));
    }
    if flags & PROFILING != 0 {
        return Err(INVALID_VALUE);
    }
    // One of the adapter's own making its queues can signal; one around an event of ours, wait for.
    if let Some((event, native)) = made_by_adapter(at, context, device, desc) {
        keep(event, native, false, out);
        return Ok(());
    }
    let native = driver().make_event(at.context(context.0)?, at.device(device.0)?)?;
    share(at, context, native, false, out).inspect_err(|_| driver().end_event(native))
}

/// Makes the adapter's event around the driver's.
fn share(at: LevelZero, context: Context, native: ZeHandle, opened: bool, out: OutObject) -> Result<(), UrResult> {
    let event = at.native()?.event_around(context.0, native, !opened)?;
    keep(event, native, opened, out);
    Ok(())
}

/// Hands an event out, and knows it again.
fn keep(event: usize, native: ZeHandle, opened: bool, out: OutObject) {
    let shared = Shared { native: native.expose_provenance(), opened, references: 1 };
    SHARED.get().lock().insert(event, shared);
    caller::give(out.0, event);
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
fn opened_by_adapter(at: LevelZero, context: Context, sealed: &Sealed) -> Option<usize> {
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
    if let Some(shared) = last.filter(|shared| shared.opened && shared.native != 0) {
        driver().close_event(std::ptr::with_exposed_provenance_mut(shared.native));
    }
    Ok(())
}

/// `urIPCGetEventHandleExp`
pub(crate) fn get(event: Event, data: usize, size: usize) -> Result<(), UrResult> {
    result::handle(event.0)?;
    result::pointer(data)?;
    result::pointer(size)?;
    let known = SHARED.get().lock().get(&event.0).copied();
    let shared = known.filter(|shared| !shared.opened).ok_or(INVALID_EVENT)?;
    ISSUED.give(data, size, || {
        let handle = driver().export_event(std::ptr::with_exposed_provenance_mut(shared.native))?;
        Ok((Said { size: 0, offset: 0, descriptor: -1, native: handle.0 }, ()))
    })
}

/// `urIPCPutEventHandleExp`
pub(crate) fn put(context: Context, data: Data) -> Result<(), UrResult> {
    result::handle(context.0)?;
    result::pointer(data.0)?;
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
    let bytes = caller::copy(data.0, size.0)?;
    let sealed = match Sealed::open(&bytes) {
        Ok(sealed) if sealed.kind == Kind::Event => sealed,
        _ => return Err(INVALID_VALUE),
    };
    Process { pid: sealed.pid, started: sealed.started }.may_be_asked()?;
    if let Some(event) = opened_by_adapter(at, context, &sealed) {
        keep(event, std::ptr::null_mut(), true, out);
        return Ok(());
    }
    let native = driver().open_event(ze_context, IpcHandle(sealed.native)).map_err(result::of_import)?;
    share(at, context, native, true, out).inspect_err(|_| driver().close_event(native))
}
