//! The handle data that callers hold: got, and not yet freed.
//!
//! A put needs the context, and dpctl's function that frees handle data only gets the bytes. So each get keeps a copy of its context
//! here, which also keeps the context alive until then.

use std::{collections::HashMap, ffi::c_void, process};

use parking_lot::Mutex;

use crate::sycl::{HandleData, OwnContext, Sycl};

struct Held {
    size: usize,
    context: OwnContext,
    /// The process that got it. A forked child has none of its parent's handle data.
    pid: u32,
}

static HELD: Mutex<Option<HashMap<usize, Held>>> = Mutex::new(None);

/// Keeps what a put of this handle data needs.
pub(crate) fn hold(handle: HandleData, context: OwnContext) {
    let held = Held { size: handle.size, context, pid: process::id() };
    let former = HELD.lock().get_or_insert_default().insert(handle.data.addr(), held);
    // The runtime gave the address out again, so the former data are gone.
    drop(former);
}

/// Puts handle data. The error says why they were not put.
///
/// # Safety
///
/// `sycl` must be the libsycl that the data come from.
pub(crate) unsafe fn put(sycl: &Sycl, data: *mut c_void) -> Result<(), String> {
    let held = HELD.lock().as_mut().and_then(|all| all.remove(&data.addr()));
    let Some(Held { size, context, pid }) = held else {
        return Err(format!("no handle data are at {data:p}: they were freed before, or never got"));
    };
    if pid != process::id() {
        // The copy of the context is the parent's, too.
        std::mem::forget(context);
        return Err("the handle data belong to the parent of this forked process".to_owned());
    }
    // SAFETY: the data were got with this context and are put once, as they are no longer held.
    unsafe { sycl.put(HandleData { data, size }, context.get()) }
}
