//! Entry points that share events with other processes: counter-based events one by one, others by their pool.
//!
//! An opened event works like any other, in both directions, and does not need the process that created it. Must never
//! return a handle of an event or a pool that was itself opened.

use std::sync::Arc;

use crate::discovery::context::Context;
use crate::events::event::{Event, Origin};
use crate::events::page::{EventPage, Purpose};
use crate::events::pool::EventPool;
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{Out, handles::Handle, layout::IpcHandle};
use crate::shared_memory::exports;

/// `zeEventCounterBasedGetIpcHandle` (ze_api.h), and `zexCounterBasedEventGetIpcHandle` of Intel's driver. The handle
/// can be opened as long as the event lives. `INVALID_ARGUMENT` for an event that was created without the IPC flag, or
/// was itself opened.
pub extern "C" fn get(event: Handle<Event>, handle: Out<IpcHandle>) -> ZeResult {
    call(|| {
        let event = event.get()?;
        handle.check()?;
        handle.write(event.export()?)
    })
}

impl Event {
    /// A handle for other processes: `INVALID_ARGUMENT` for an event that is not shared, or was itself opened.
    pub fn export(&self) -> Outcome<IpcHandle> {
        match &self.origin {
            Origin::Shared { page, .. } => Ok(IpcHandle { data: page.handle()? }),
            Origin::Pool(_) | Origin::Single { .. } => Err(ZeResult::INVALID_ARGUMENT),
        }
    }

    /// Opens an event: `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle, and for a handle that cannot be
    /// imported.
    pub fn open(handle: &IpcHandle) -> Outcome<Self> {
        Ok(Self::on_page(EventPage::open(Purpose::Event, &handle.data)?, [0, 0]))
    }
}

/// `zeEventCounterBasedOpenIpcHandle` (ze_api.h), and `zexCounterBasedEventOpenIpcHandle`. Every call returns a new
/// event, in the producer too. `OUT_OF_DEVICE_MEMORY` for bytes that are not a handle, and for a handle that cannot be
/// imported.
pub extern "C" fn open(context: Handle<Context>, handle: IpcHandle, event: Out<Handle<Event>>) -> ZeResult {
    call(|| {
        context.get()?;
        event.check()?;
        event.write(Handle::register(Arc::new(Event::open(&handle)?)))
    })
}

/// `zeEventCounterBasedCloseIpcHandle` (ze_api.h), and `zexCounterBasedEventCloseIpcHandle`. Destroys an event that was
/// opened; `INVALID_ARGUMENT` for any other.
pub extern "C" fn close(event: Handle<Event>) -> ZeResult {
    call_teardown(|| {
        match &event.get()?.origin {
            Origin::Shared { page, .. } if page.is_opened() => {}
            _ => return Err(ZeResult::INVALID_ARGUMENT),
        }
        event.retire()?.end();
        Ok(())
    })
}

/// `zeEventPoolGetIpcHandle` (ze_api.h). `INVALID_SYNCHRONIZATION_OBJECT` for a pool that was created without the IPC
/// flag, `INVALID_ARGUMENT` for one that was itself opened.
pub extern "C" fn pool_get(pool: Handle<EventPool>, handle: Out<IpcHandle>) -> ZeResult {
    call(|| {
        let pool = pool.get()?;
        handle.check()?;
        let page = pool.page.as_ref().ok_or(ZeResult::INVALID_SYNCHRONIZATION_OBJECT)?;
        handle.write(IpcHandle { data: page.handle()? })
    })
}

/// `zeEventPoolPutIpcHandle` (ze_api.h). `SUCCESS` also for an unknown handle, as with memory.
pub extern "C" fn pool_put(context: Handle<Context>, handle: IpcHandle) -> ZeResult {
    call_teardown(|| {
        context.get()?;
        exports::put(&handle.data, |kind| kind == Purpose::Pool as u16);
        Ok(())
    })
}

/// `zeEventPoolOpenIpcHandle` (ze_api.h). Every call returns a new pool. The errors are those of events.
pub extern "C" fn pool_open(context: Handle<Context>, handle: IpcHandle, pool: Out<Handle<EventPool>>) -> ZeResult {
    call(|| {
        context.get()?;
        pool.check()?;
        let page = EventPage::open(Purpose::Pool, &handle.data)?;
        pool.write(Handle::register(EventPool::new(context, page.header, Some(page))))
    })
}

/// `zeEventPoolCloseIpcHandle` (ze_api.h). Its events live on until they are destroyed. `INVALID_ARGUMENT` for a pool
/// that was not opened.
pub extern "C" fn pool_close(pool: Handle<EventPool>) -> ZeResult {
    call_teardown(|| {
        if !pool.get()?.is_opened() {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        pool.retire().map(drop)
    })
}
