//! Contexts: which one a thread uses, and what ends with one.
//!
//! All contexts share the address space of the software device. A context owns its streams and its memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::process;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use urscope_device::Device;

use crate::arguments::Out;
use crate::objects::Objects;
use crate::result::{Code, Outcome};
use crate::stream::{self, Stream};
use crate::{exports::functions, memory};

pub(crate) struct Context {
    /// The ordinal of its device.
    pub device: i32,
}

static CONTEXTS: Objects<Context> = Objects::new();

/// The process that has called `cuInit`.
static INITIALISED: OnceLock<u32> = OnceLock::new();

/// The primary contexts by device, with how often each is retained.
static PRIMARY: Mutex<BTreeMap<i32, (u32, usize)>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The contexts that this thread has made current, the last one on top. Never dropped: exit handlers make calls,
    /// too.
    static CURRENT: RefCell<ManuallyDrop<Vec<usize>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// `NOT_INITIALIZED` before `cuInit`, and as with the driver in a forked child of a process that called it.
pub(crate) fn initialised() -> Outcome {
    INITIALISED.get().filter(|process| **process == process::id()).map(drop).ok_or(Code::NOT_INITIALIZED)
}

/// `NO_DEVICE` if the process sees none.
fn initialise() -> Outcome {
    if INITIALISED.get().is_none() {
        if urscope_device::devices().is_empty() {
            return Err(Code::NO_DEVICE);
        }
        urscope_device::allow_descriptor_fetch();
        // If another thread was faster, it is of the same process.
        let _ = INITIALISED.set(process::id());
    }
    initialised()
}

/// The devices by ordinal.
pub(crate) fn devices() -> Outcome<&'static [Arc<Device>]> {
    initialised()?;
    Ok(urscope_device::devices())
}

/// The handle of the thread's context, and the context: `INVALID_CONTEXT` if there is none.
pub(crate) fn current() -> Outcome<(usize, Arc<Context>)> {
    initialised()?;
    let handle = top();
    Ok((handle, get(handle)?))
}

/// The device of the thread's context.
pub(crate) fn current_device() -> Outcome<Arc<Device>> {
    device(current()?.1.device)
}

/// `INVALID_DEVICE` for an ordinal that there is not.
pub(crate) fn device(ordinal: i32) -> Outcome<Arc<Device>> {
    let devices = devices()?;
    usize::try_from(ordinal).ok().and_then(|at| devices.get(at)).map(Arc::clone).ok_or(Code::INVALID_DEVICE)
}

fn get(handle: usize) -> Outcome<Arc<Context>> {
    CONTEXTS.get(handle).map_err(|_| Code::INVALID_CONTEXT)
}

fn top() -> usize {
    CURRENT.with_borrow(|stack| stack.last().copied()).unwrap_or(0)
}

fn set_top(handle: usize) -> Outcome {
    initialised()?;
    if handle != 0 {
        get(handle)?;
    }
    CURRENT.with_borrow_mut(|stack| {
        stack.pop();
        if handle != 0 {
            stack.push(handle);
        }
    });
    Ok(())
}

fn create(ordinal: i32) -> Outcome<usize> {
    let on = device(ordinal)?;
    let handle = CONTEXTS.add(Context { device: ordinal });
    stream::add(Stream::default_of(handle, on));
    Ok(handle)
}

/// Ends a context with all that belongs to it.
fn destroy(handle: usize) -> Outcome {
    CONTEXTS.remove(handle).map_err(|_| Code::INVALID_CONTEXT)?;
    stream::end_all(handle);
    memory::end_all(handle);
    CURRENT.with_borrow_mut(|stack| stack.retain(|other| *other != handle));
    Ok(())
}

fn release_primary(ordinal: i32, by: u32) -> Outcome {
    device(ordinal)?;
    let mut primary = PRIMARY.lock();
    let Some((count, handle)) = primary.get_mut(&ordinal) else { return Err(Code::INVALID_CONTEXT) };
    *count = count.saturating_sub(by);
    if *count == 0 {
        let ended = *handle;
        primary.remove(&ordinal);
        return destroy(ended);
    }
    Ok(())
}

fn create_current(context: Out<usize>, ordinal: i32) -> Outcome {
    context.check()?;
    let handle = create(ordinal)?;
    CURRENT.with_borrow_mut(|stack| stack.push(handle));
    context.write(handle)
}

functions! {
    2000 "cuInit" cuInit(flags: u32) {
        if flags == 0 { initialise() } else { Err(Code::INVALID_VALUE) }
    }
    7000 "cuDevicePrimaryCtxRetain" cuDevicePrimaryCtxRetain(context: Out<usize>, ordinal: i32) {
        initialised()?;
        context.check()?;
        let mut primary = PRIMARY.lock();
        let handle = if let Some((count, handle)) = primary.get_mut(&ordinal) {
            *count += 1;
            *handle
        } else {
            let handle = create(ordinal)?;
            primary.insert(ordinal, (1, handle));
            handle
        };
        context.write(handle)
    }
    11000 "cuDevicePrimaryCtxRelease" cuDevicePrimaryCtxRelease_v2(ordinal: i32) {
        release_primary(ordinal, 1)
    }
    11000 "cuDevicePrimaryCtxReset" cuDevicePrimaryCtxReset_v2(ordinal: i32) {
        release_primary(ordinal, u32::MAX)
    }
    11000 "cuDevicePrimaryCtxSetFlags" cuDevicePrimaryCtxSetFlags_v2(ordinal: i32, _flags: u32) {
        device(ordinal).map(drop)
    }
    7000 "cuDevicePrimaryCtxGetState" cuDevicePrimaryCtxGetState(ordinal: i32, flags: Out<u32>, active: Out<i32>) {
        device(ordinal)?;
        flags.write(0)?;
        active.write(PRIMARY.lock().contains_key(&ordinal).into())
    }
    3020 "cuCtxCreate" cuCtxCreate_v2(context: Out<usize>, _flags: u32, ordinal: i32) {
        create_current(context, ordinal)
    }
    12050 "cuCtxCreate" cuCtxCreate_v4(context: Out<usize>, _parameters: usize, _flags: u32, ordinal: i32) {
        create_current(context, ordinal)
    }
    4000 "cuCtxDestroy" cuCtxDestroy_v2(context: usize) {
        initialised()?;
        if PRIMARY.lock().values().any(|(_, primary)| *primary == context) {
            return Err(Code::INVALID_CONTEXT);
        }
        destroy(context)
    }
    4000 "cuCtxPushCurrent" cuCtxPushCurrent_v2(context: usize) {
        initialised()?;
        get(context)?;
        CURRENT.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }
    4000 "cuCtxPopCurrent" cuCtxPopCurrent_v2(context: Out<usize>) {
        initialised()?;
        let popped = CURRENT.with_borrow_mut(|stack| stack.pop()).ok_or(Code::INVALID_CONTEXT)?;
        context.write_optional(popped);
        Ok(())
    }
    4000 "cuCtxSetCurrent" cuCtxSetCurrent(context: usize) {
        set_top(context)
    }
    4000 "cuCtxGetCurrent" cuCtxGetCurrent(context: Out<usize>) {
        initialised()?;
        context.write(top())
    }
    2000 "cuCtxGetDevice" cuCtxGetDevice(ordinal: Out<i32>) {
        ordinal.write(current()?.1.device)
    }
    3020 "cuCtxGetApiVersion" cuCtxGetApiVersion(_context: usize, version: Out<u32>) {
        version.write(3020)
    }
    7000 "cuCtxGetFlags" cuCtxGetFlags(flags: Out<u32>) {
        current()?;
        flags.write(0)
    }
    4000 "cuCtxEnablePeerAccess" cuCtxEnablePeerAccess(_peer: usize, _flags: u32) {
        current().map(drop)
    }
    2000 "cuCtxSynchronize" cuCtxSynchronize() {
        stream::synchronise_all(current()?.0);
        Ok(())
    }
}
