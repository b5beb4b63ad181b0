//! The C functions for events, which dpctl has no model for.

use std::ffi::{c_char, c_int};
use std::slice;

use crate::references::{ContextRef, EventRef, QueueRef, given};
use crate::sycl::{Sycl, sycl};
use crate::{get, handles::Kind, not_null, reported};

/// Makes an event that can be shared: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_event_create(context: Option<ContextRef>) -> Option<EventRef> {
    reported("urscope_ipc_event_create", || {
        let context = given(context, "CRef")?;
        let sycl = sycl()?;
        sycl.events()?.make(sycl, context)
    })
}

/// Has a queue signal a shared event when all that was submitted to it before is done. Returns 0, or 1.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_event_signal(queue: Option<QueueRef>, event: Option<EventRef>) -> c_int {
    enqueued("urscope_ipc_event_signal", queue, event, |sycl, queue, event| sycl.events()?.signal(sycl, queue, event))
}

/// Has all that is submitted to a queue from now on wait for the last signal of a shared event. Returns 0, or 1.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub extern "C" fn urscope_ipc_event_wait(queue: Option<QueueRef>, event: Option<EventRef>) -> c_int {
    enqueued("urscope_ipc_event_wait", queue, event, |sycl, queue, event| sycl.events()?.wait(sycl, queue, event))
}

fn enqueued(
    function: &str,
    queue: Option<QueueRef>,
    event: Option<EventRef>,
    enqueue: impl FnOnce(&'static Sycl, QueueRef, EventRef) -> Result<(), String>,
) -> c_int {
    let done = reported(function, || {
        let queue = given(queue, "QRef")?;
        let event = given(event, "ERef")?;
        enqueue(sycl()?, queue, event)
    });
    c_int::from(done.is_none())
}

/// Gets handle data for a shared event, as [`crate::DPCTLIPCMem_GetHandle`] does for memory. The event
/// must live until they are freed.
///
/// # Safety
///
/// `data` and `size` must be null or writable.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_get(
    event: Option<EventRef>,
    context: Option<ContextRef>,
    data: *mut *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        get("urscope_ipc_event_get", Kind::Event, context, data, size, |sycl, _| {
            let event = given(event, "ERef")?;
            sycl.events()?.get(event)
        })
    }
}

/// Opens handle data of an event of another process: dpctl's event reference, which `DPCTLEvent_Delete` ends, or null.
///
/// # Safety
///
/// `data` must be null or point to `size` bytes.
// SAFETY: no other library defines the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn urscope_ipc_event_open(
    data: *const c_char,
    size: usize,
    context: Option<ContextRef>,
) -> Option<EventRef> {
    reported("urscope_ipc_event_open", || {
        not_null(data, "HandleData")?;
        let context = given(context, "CRef")?;
        let sycl = sycl()?;
        // SAFETY: the caller's promise.
        unsafe { sycl.events()?.open(sycl, slice::from_raw_parts(data.cast::<u8>(), size), context) }
    })
}
