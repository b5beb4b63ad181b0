//! The C functions for events, which dpctl has no model for.

use std::{
    ffi::{c_char, c_int},
    ptr, slice,
};

use crate::{
    get,
    handles::Kind,
    not_null, reported,
    sycl::{ContextRef, EventRef, QueueRef, Sycl, sycl},
};

/// Makes an event that can be shared: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
///
/// # Safety
///
/// `context` must be null or a context reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_create(context: ContextRef) -> EventRef {
    reported("urscope_ipc_event_create", || {
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.make(sycl, context) }
    })
    .unwrap_or(ptr::null())
}

/// Has a queue signal a shared event when all that was submitted to it before is done. Returns 0, or 1.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_signal(queue: QueueRef, event: EventRef) -> c_int {
    enqueued("urscope_ipc_event_signal", queue, event, |sycl| {
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.signal(sycl, queue, event) }
    })
}

/// Has all that is submitted to a queue from now on wait for the last signal of a shared event. Returns 0, or 1.
///
/// # Safety
///
/// Both must be null or references of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_wait(queue: QueueRef, event: EventRef) -> c_int {
    enqueued("urscope_ipc_event_wait", queue, event, |sycl| {
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.wait(sycl, queue, event) }
    })
}

fn enqueued(
    function: &str,
    queue: QueueRef,
    event: EventRef,
    enqueue: impl FnOnce(&'static Sycl) -> Result<(), String>,
) -> c_int {
    let done = reported(function, || {
        not_null(queue, "QRef")?;
        not_null(event, "ERef")?;
        enqueue(sycl()?)
    });
    c_int::from(done.is_none())
}

/// Gets handle data for a shared event, as [`crate::DPCTLIPCMem_GetHandle`] does for memory. The event
/// must live until they are freed.
///
/// # Safety
///
/// The references must be null or dpctl's, and the event of that context; `data` and `size` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_get(
    event: EventRef,
    context: ContextRef,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("urscope_ipc_event_get", Kind::Event, context, data, size, |sycl| {
            not_null(event, "ERef")?;
            sycl.events()?.get(sycl, event)
        })
    }
}

/// Opens handle data of an event of another process: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes; `context` must be null or a reference of dpctl.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_open(data: *const c_char, size: usize, context: ContextRef) -> EventRef {
    reported("urscope_ipc_event_open", || {
        not_null(data, "HandleData")?;
        not_null(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.open(sycl, slice::from_raw_parts(data.cast::<u8>(), size), context) }
    })
    .unwrap_or(ptr::null())
}
