//! The handle data that callers hold: got, and not yet freed.
//!
//! A put needs the context, and dpctl's function that frees handle data only gets the bytes. So each
//! get keeps a copy of its context here, which also keeps the context alive until then.

use std::{collections::HashMap, ffi::c_void, process};

use parking_lot::Mutex;

use crate::references::ContextRef;
use crate::sycl::{HandleData, OwnCopy, Sycl, put_by};

/// The kind of object that handle data are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    PhysicalMemory,
    Event,
}

struct Held {
    kind: Kind,
    size: usize,
    /// How often they were got: libsycl gives the same data for every get of an event.
    gets: usize,
    context: OwnCopy<ContextRef>,
    /// The process that got it. A forked child has none of its parent's handle data.
    pid: u32,
}

static HELD: Mutex<Option<HashMap<usize, Held>>> = Mutex::new(None);

/// Stores what a put of this handle data needs.
pub(crate) fn hold(kind: Kind, handle: HandleData, context: OwnCopy<ContextRef>) {
    let pid = process::id();
    let mut all = HELD.lock();
    let all = all.get_or_insert_default();
    let again = all.get(&handle.data.addr()).filter(|held| kind == Kind::Event && held.kind == kind && held.pid == pid);
    let gets = again.map_or(0, |held| held.gets) + 1;
    // Of other kinds, the runtime gave the address out again, so the former data are gone.
    all.insert(handle.data.addr(), Held { kind, size: handle.size, gets, context, pid });
}

/// Puts handle data. The error says why they were not put.
///
/// # Safety
///
/// `sycl` must be the libsycl that the data come from.
pub(crate) unsafe fn put(sycl: &Sycl, data: *mut c_void) -> Result<(), String> {
    let held = {
        let mut all = HELD.lock();
        match all.as_mut().and_then(|all| all.get_mut(&data.addr())) {
            Some(held) if held.gets > 1 => {
                held.gets -= 1;
                return Ok(());
            }
            _ => all.as_mut().and_then(|all| all.remove(&data.addr())),
        }
    };
    let Some(Held { kind, size, context, pid, .. }) = held else {
        return Err(format!("no handle data are at {data:p}: they were freed before, or never got"));
    };
    if pid != process::id() {
        // The copy of the context is the parent's, too.
        std::mem::forget(context);
        return Err("the handle data belong to the parent of this forked process".to_owned());
    }
    let handle = HandleData { data, size };
    // SAFETY: the data were got with this context and are put once, as they are no longer held.
    unsafe {
        match kind {
            Kind::Memory => sycl.put(handle, context.get()),
            Kind::PhysicalMemory => put_by(sycl.physical_memory()?.put, handle, context.get()),
            Kind::Event => put_by(sycl.events()?.put, handle, context.get()),
        }
    }
}
