//! Entry points that share events with other processes: counter-based ones by themselves, others by their pool.
//!
//! The bytes of a handle are sealed; the descriptor in them is fetched here and by nobody else. What is opened is an
//! event like any other, in both directions, and needs nothing of its maker any more. Must never hand out a handle of
//! what was itself opened.

use std::sync::Arc;

use crate::discovery::context::Context;
use crate::events::event::{Event, Origin};
use crate::events::page::{EventPage, Purpose};
use crate::events::pool::EventPool;
use crate::ffi::Out;
use crate::ffi::handles::Handle;
use crate::ffi::layout::event::{IpcEventCounterBasedHandle, IpcEventPoolHandle};
use crate::ffi::result::{ZeResult, call, call_teardown};
use crate::memory::ipc::put_handle;

/// `zeEventCounterBasedGetIpcHandle` (ze_api.h), and `zexCounterBasedEventGetIpcHandle` of Intel's driver:
/// `INVALID_ARGUMENT` for an event that was not made for it, or was itself opened. The handle can be opened as long as
/// the event lives.
pub extern "C" fn get(event: Handle<Event>, handle: Out<IpcEventCounterBasedHandle>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        handle.check()?;
        match &event.origin {
            Origin::EventPage { page, .. } => handle.write(IpcEventCounterBasedHandle { data: page.handle()? }),
            Origin::Pool(_) | Origin::Single { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    })
}

/// `zeEventCounterBasedOpenIpcHandle` (ze_api.h), and `zexCounterBasedEventOpenIpcHandle`: a new event for each call,
/// also in the producer itself. `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle, as for one that cannot be imported.
pub extern "C" fn open(
    context: Handle<Context>,
    handle: IpcEventCounterBasedHandle,
    event: Out<Handle<Event>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        event.check()?;
        let page = EventPage::open(Purpose::Event, &handle.data)?;
        event.write(Handle::register(Arc::new(Event::on(page, [0, 0]))))
    })
}

/// `zeEventCounterBasedCloseIpcHandle` (ze_api.h), and `zexCounterBasedEventCloseIpcHandle`: ends an event that was
/// opened; `INVALID_ARGUMENT` for any other.
pub extern "C" fn close(event: Handle<Event>) -> ZeResult {
    call_teardown(|| {
        match &event.get()?.origin {
            Origin::EventPage { page, .. } if page.is_opened() => {}
            _ => return Err(ZeResult::INVALID_ARGUMENT),
        }
        event.retire()?.end();
        Ok(())
    })
}

/// `zeEventPoolGetIpcHandle` (ze_api.h): `INVALID_SYNCHRONIZATION_OBJECT` for a pool that was not made for it,
/// `INVALID_ARGUMENT` for one that was itself opened.
pub extern "C" fn pool_get(pool: Handle<EventPool>, handle: Out<IpcEventPoolHandle>) -> ZeResult {
    call(|| {
        let pool = pool.get()?;
        handle.check()?;
        let page = pool.page().ok_or(ZeResult::INVALID_SYNCHRONIZATION_OBJECT)?;
        handle.write(IpcEventPoolHandle { data: page.handle()? })
    })
}

/// `zeEventPoolPutIpcHandle` (ze_api.h). One that is not known is no error, as with memory.
pub extern "C" fn pool_put(context: Handle<Context>, handle: IpcEventPoolHandle) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        put_handle(&handle.data, |kind| kind == Purpose::Pool as u16);
        Ok(())
    })
}

/// `zeEventPoolOpenIpcHandle` (ze_api.h): a new pool for each call; errors as with events.
pub extern "C" fn pool_open(
    context: Handle<Context>,
    handle: IpcEventPoolHandle,
    pool: Out<Handle<EventPool>>,
) -> ZeResult {
    call(|| {
        context.get()?;
        pool.check()?;
        let page = EventPage::open(Purpose::Pool, &handle.data)?;
        pool.write(Handle::register(EventPool::new(context, page.header(), Some(page))))
    })
}

/// `zeEventPoolCloseIpcHandle` (ze_api.h): `INVALID_ARGUMENT` for a pool that was not opened. Its events live on until
/// they are destroyed.
pub extern "C" fn pool_close(pool: Handle<EventPool>) -> ZeResult {
    call_teardown(|| {
        if !pool.get()?.is_opened() {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        pool.retire().map(drop)
    })
}
