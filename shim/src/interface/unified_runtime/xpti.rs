//! The entry point for adapters that no other reaches: XPTI's stream `ur.call`, in which a loader of Unified Runtime
//! shows each call before and after it. Calls cannot be refused or replaced.
//!
//! The loader's layer `UR_LAYER_TRACING` writes the stream. The dispatcher of XPTI (`libxptifw.so`) opens the
//! libraries in `XPTI_SUBSCRIBERS` and calls their `xptiTraceInit` (`xpti_trace_framework.h`). libsycl starts it in
//! its constructors, which may run before urscope's, so the variables must be set when the program starts.
//!
//! The stream shows the calls of all adapters. Those of an adapter that [`super::ddi`] or `inline` hooks are ignored:
//! no call may be recorded twice. The stream does not show the end of a call that throws; the next call of the thread
//! detects it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicUsize, Ordering};
use std::{cell::Cell, mem::ManuallyDrop, ptr::null_mut};

use urscope_schema::api::{Function, ResultCode, UNIFIED_RUNTIME, unified_runtime::VERSION};
use urscope_schema::call::Values;
use urscope_schema::trace::records::{EntryPoint, XPTI};

use super::ddi::{self, Interception};
use super::observed::{self, Observed};
use crate::backend::adapter::registry;
use crate::knobs::{self, BackendChoice, Entry, OnError};
use crate::raw::args::{AdapterHandle, observed::Parameters};
use crate::raw::{call_stacks::caller, signals::interruptions, symbols::modules::Module, threads::mutex::Mutex};
use crate::{layer::trace::notices, stacks};

/// The stream of the calls (`ur_tracing_layer.cpp`).
const STREAM: &CStr = c"ur.call";

/// The kinds of its records: `trace_point_type_t::function_with_args_begin` and `_end` (`xpti_data_types.h`).
const BEGIN: u16 = 14 << 1;
const END: u16 = (14 << 1) | 1;

/// A `function_with_args_t` (`xpti_data_types.h`).
#[repr(C)]
struct Call {
    function_id: u32,
    function_name: *const c_char,
    /// A `ur_…_params_t` (`ur_api.h`).
    arguments: *mut c_void,
    /// The `ur_result_t`; null at the beginning.
    result: *const u32,
    of_user: *mut c_void,
}

/// A `tracepoint_callback_api_t`.
type Callback = unsafe extern "C" fn(u16, *mut c_void, *mut c_void, u64, *const c_void);
type RegisterStream = unsafe extern "C" fn(*const c_char) -> u8;
type RegisterCallback = unsafe extern "C" fn(u8, u16, Callback) -> i32;

/// Whether a loader shows its calls to urscope.
static SUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// Whether a loader shows its calls to urscope.
pub fn is_subscribed() -> bool {
    SUBSCRIBED.load(Ordering::Relaxed)
}

/// Called by the exported `xptiTraceInit`, which has stored its caller: subscribes to the stream of version
/// `major`.`minor`.
///
/// # Safety
///
/// The arguments are those of a call by the dispatcher of XPTI: `stream` is a C string.
pub unsafe extern "C" fn trace_init(major: u32, minor: u32, _version: *const c_char, stream: *const c_char) {
    // SAFETY: the caller's promise.
    if stream.is_null() || unsafe { CStr::from_ptr(stream) } != STREAM || knobs::is_excluded() {
        return;
    }
    let _held_off = interruptions::hold_off();
    let dispatcher = caller::address();
    let problem = if (major << 16) | minor == VERSION {
        subscribe(dispatcher).err().map(str::to_owned)
    } else {
        let ours = VERSION >> 16;
        let our_minor = VERSION & 0xffff;
        Some(format!(
            "it shows calls of Unified Runtime {major}.{minor}, but this version of urscope supports only {ours}.{our_minor}"
        ))
    };
    if let Some(problem) = problem {
        // The constructor of this library may not have run yet.
        notices::install();
        let module = Module::containing(dispatcher);
        ddi::report(&EntryPoint {
            kind: XPTI.into(),
            library: module.as_ref().map(Module::file_name).unwrap_or_default(),
            directory: module.as_ref().map(Module::directory).unwrap_or_default(),
            problem,
            ..EntryPoint::default()
        });
    }
}

/// Subscribes with the dispatcher whose code is at `dispatcher`.
fn subscribe(dispatcher: usize) -> Result<(), &'static str> {
    let module = Module::containing(dispatcher).ok_or("its dispatcher is in no library")?;
    let address_of = |name| module.address_of(name).map(std::ptr::with_exposed_provenance_mut::<c_void>);
    let (Some(stream), Some(callback)) = (address_of(c"xptiRegisterStream"), address_of(c"xptiRegisterCallback"))
    else {
        return Err("its dispatcher has not the functions of XPTI");
    };
    stacks::leave_out(dispatcher);
    // SAFETY: they are the dispatcher's functions of these names, with these signatures (`xpti_trace_framework.h`).
    let (stream, callback) = unsafe {
        (
            std::mem::transmute::<*mut c_void, RegisterStream>(stream),
            std::mem::transmute::<*mut c_void, RegisterCallback>(callback),
        )
    };
    // SAFETY: as above. The callbacks have the signature of `tracepoint_callback_api_t`, and this library is never
    // unloaded.
    let results = unsafe {
        let stream = stream(STREAM.as_ptr());
        [callback(stream, BEGIN, call_begins), callback(stream, END, call_ends)]
    };
    if results != [0, 0] {
        return Err("its dispatcher refuses a subscription");
    }
    SUBSCRIBED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The most ids of functions. The largest one of 2026.2 is below 350 (`ur_function_t`).
const IDS: usize = 1024;

/// The functions by their ids: 0 before the lookup, [`NOT_HOOKED`], or the index in [`Function::ALL`] plus 1.
static BY_ID: [AtomicU16; IDS] = [const { AtomicU16::new(0) }; IDS];

const NOT_HOOKED: u16 = u16::MAX;

/// The function of a call, if it is hooked.
fn function_of(call: &Call) -> Option<Function> {
    let known = BY_ID.get(call.function_id as usize)?;
    let mut place = known.load(Ordering::Relaxed);
    if place == 0 {
        if call.function_name.is_null() {
            return None;
        }
        // SAFETY: a C string (`function_with_args_t`).
        let name = unsafe { CStr::from_ptr(call.function_name) }.to_str().ok()?;
        let found = Function::from_name(name).filter(|function| function.interface() == &UNIFIED_RUNTIME);
        place = found.map_or(NOT_HOOKED, |function| function as u16 + 1);
        known.store(place, Ordering::Relaxed);
    }
    Function::ALL.get(usize::from(place).checked_sub(1)?).copied()
}

/// The most adapters in the cache.
const ADAPTER_LIMIT: usize = 16;

/// The adapters of calls so far: the dispatch table, null for none, and the number of an observed adapter, or
/// [`NOT_OBSERVED`].
static ADAPTER_CACHE: [(AtomicPtr<c_void>, AtomicUsize); ADAPTER_LIMIT] =
    [const { (AtomicPtr::new(null_mut()), AtomicUsize::new(NOT_OBSERVED)) }; ADAPTER_LIMIT];

static ADAPTER_CACHE_LOCK: Mutex<()> = Mutex::new(());

const NOT_OBSERVED: usize = usize::MAX;

/// The number of the adapter of a handle, if its calls are observed here.
fn observed_adapter(handle: AdapterHandle) -> Option<usize> {
    let table = handle.dispatch_table();
    let known = ADAPTER_CACHE.iter().map(|(known, via)| (known.load(Ordering::Acquire), via));
    let known = known.take_while(|(known, _)| !known.is_null()).find(|(known, _)| *known == table);
    let via = known.map_or_else(|| classify(handle), |(_, via)| via.load(Ordering::Relaxed));
    (via != NOT_OBSERVED).then_some(via)
}

/// Decides at the first call of an adapter whether it is observed. If it is hooked, that happened before.
#[cold]
fn classify(handle: AdapterHandle) -> usize {
    let _held_off = interruptions::hold_off();
    let table = handle.dispatch_table();
    let _deciding = ADAPTER_CACHE_LOCK.lock();
    let mut free = None;
    for (known, via) in &ADAPTER_CACHE {
        let there = known.load(Ordering::Acquire);
        if there == table {
            return via.load(Ordering::Relaxed);
        }
        if there.is_null() {
            free = Some((known, via));
            break;
        }
    }
    // The cache has no room for it.
    let Some((known, stored)) = free.filter(|_| !table.is_null()) else { return NOT_OBSERVED };
    let via = add_adapter(handle).unwrap_or(NOT_OBSERVED);
    stored.store(via, Ordering::Relaxed);
    known.store(table, Ordering::Release);
    via
}

fn add_adapter(handle: AdapterHandle) -> Option<usize> {
    let module = Module::containing(handle.dispatch_table() as usize)?;
    if registry::adapter_of(handle).is_some() || ddi::is_inline(&module) {
        return None;
    }
    let via = ddi::add_adapter(Interception::Observed, module.clone())?;
    let functions = Function::ALL.iter().filter(|function| function.interface() == &UNIFIED_RUNTIME);
    ddi::report(&EntryPoint {
        kind: XPTI.into(),
        via: via as u64,
        library: module.file_name(),
        directory: module.directory(),
        runtime: Module::paths_of(&["libsycl.so", "libur_loader.so"]),
        functions: functions.map(|function| function.name().to_owned()).collect(),
        ..EntryPoint::default()
    });
    let knobs = knobs::read();
    if knobs.validate.0 && knobs.on_error == OnError::Refuse {
        tracing::warn!(
            "URSCOPE_ON_ERROR=refuse refuses no call of {}: XPTI only shows its calls, so what violates a rule is reported and goes on; \
             {}",
            module.file_name(),
            alternative(knobs.entry)
        );
    }
    if knobs.backend == BackendChoice::LevelZero {
        tracing::warn!(
            "URSCOPE_BACKEND=level_zero replaces no function of {}: XPTI only shows its calls; {}",
            module.file_name(),
            alternative(knobs.entry)
        );
    }
    Some(via)
}

/// The advice for a user who wants more than observation.
const fn alternative(entry: Entry) -> &'static str {
    match entry {
        Entry::Xpti => "without URSCOPE_ENTRY=xpti, adapters are reached by their tables where that is possible",
        Entry::Auto => {
            "a runtime whose adapters are libraries of their own (libur_adapter_*.so) can be reached otherwise"
        }
    }
}

/// The most nested calls of a thread: a callback of a call may make one.
const NESTING_LIMIT: usize = 2;

/// A call that has not ended.
#[derive(Clone, Copy, Debug)]
struct ActiveCall<T> {
    /// XPTI's number of the call.
    instance: u64,
    /// The address of its arguments, on the stack.
    place: usize,
    observed: T,
}

/// The calls of a thread that have not ended.
#[derive(Debug)]
struct Calls<T>([Option<ActiveCall<T>>; NESTING_LIMIT]);

impl<T: Copy> Calls<T> {
    /// Makes room for a call whose arguments are at `place`. Passes calls that ended by an exception to `on_exception`:
    /// the stack of their arguments is in use again, or there is no room for another call.
    fn make_room(&mut self, place: usize, mut on_exception: impl FnMut(T)) {
        self.remove(|call| call.place <= place, &mut on_exception);
        if self.0.iter().all(Option::is_some) {
            self.remove(|_| true, on_exception);
        }
    }

    /// Adds a call, for which there is room.
    fn add(&mut self, new: ActiveCall<T>) {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(new);
        }
    }

    /// Removes a call that has ended. Calls inside of it ended by an exception.
    fn end(&mut self, instance: u64, on_exception: impl FnMut(T)) -> Option<T> {
        let slot = self.0.iter_mut().find(|slot| slot.is_some_and(|call| call.instance == instance))?;
        let ended = slot.take()?;
        self.remove(|call| call.place < ended.place, on_exception);
        Some(ended.observed)
    }

    fn remove(&mut self, is_removed: impl Fn(&ActiveCall<T>) -> bool, mut on_exception: impl FnMut(T)) {
        for slot in &mut self.0 {
            if let Some(call) = slot.take_if(|call| is_removed(call)) {
                on_exception(call.observed);
            }
        }
    }
}

thread_local! {
    /// The calls of the thread. Boxed, because every thread of every process has this variable; without a destructor,
    /// because adapters are called until the process ends.
    static ACTIVE_CALLS: Cell<ManuallyDrop<Option<Box<Calls<Observed>>>>> = const { Cell::new(ManuallyDrop::new(None)) };
}

/// Calls `with` with the calls of this thread.
fn of_this_thread<R>(with: impl FnOnce(&mut Calls<Observed>) -> R) -> R {
    let stored = ManuallyDrop::into_inner(ACTIVE_CALLS.replace(ManuallyDrop::new(None)));
    let mut calls = stored.unwrap_or_else(|| Box::new(Calls([None; NESTING_LIMIT])));
    let result = with(&mut calls);
    if calls.0.iter().any(Option::is_some) {
        ACTIVE_CALLS.set(ManuallyDrop::new(Some(calls)));
    }
    result
}

/// A call begins.
///
/// # Safety
///
/// `call` is a `function_with_args_t` of the stream, with the arguments of the function that it names.
unsafe extern "C" fn call_begins(_: u16, _: *mut c_void, _: *mut c_void, instance: u64, call: *const c_void) {
    // SAFETY: the caller's promise.
    let Some(call) = (unsafe { call.cast::<Call>().as_ref() }) else { return };
    let Some(function) = function_of(call) else { return };
    let place = call.arguments.expose_provenance();
    // SAFETY: the caller's promise; the arguments are read in the order of the row.
    let Some(parameters) = (unsafe { Parameters::new(place) }) else { return };
    let Some(via) = parameters.dispatched_by(function).and_then(observed_adapter) else { return };
    of_this_thread(|calls| {
        calls.make_room(place, Observed::record_exception);
        calls.add(ActiveCall { instance, place, observed: observed::begins(function, via, parameters) });
    });
}

/// A call has ended.
///
/// # Safety
///
/// As for [`call_begins`], with the result.
unsafe extern "C" fn call_ends(_: u16, _: *mut c_void, _: *mut c_void, instance: u64, call: *const c_void) {
    // SAFETY: the caller's promise.
    let Some(call) = (unsafe { call.cast::<Call>().as_ref() }) else { return };
    let Some(ended) = of_this_thread(|calls| calls.end(instance, Observed::record_exception)) else { return };
    // SAFETY: the `ur_result_t` of the call, if there is one.
    let result = unsafe { call.result.as_ref() };
    let result = result.map_or(ResultCode::UNKNOWN, |result| ResultCode(*result));
    // SAFETY: the call has returned this result to the loader, and not yet to its caller.
    let answers = ended.out_params().map_or(Values::NONE, |out_params| unsafe { out_params.read(result) });
    ended.returns(result, answers);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(calls: &mut Calls<u64>, instance: u64, place: usize, on_exception: &mut Vec<u64>) {
        calls.make_room(place, |call| on_exception.push(call));
        calls.add(ActiveCall { instance, place, observed: instance });
    }

    #[test]
    fn a_call_that_was_left_by_an_exception_is_found_by_the_next_one() {
        let mut calls = Calls([None; NESTING_LIMIT]);
        let mut on_exception = Vec::new();
        // The stack grows down: 2 is inside of 1.
        begin(&mut calls, 1, 0x2000, &mut on_exception);
        begin(&mut calls, 2, 0x1000, &mut on_exception);
        assert_eq!(calls.end(2, |_| panic!("none is inside")), Some(2));
        assert_eq!(calls.end(2, |_| panic!("it has ended")), None);
        // 3 throws.
        begin(&mut calls, 3, 0x1000, &mut on_exception);
        begin(&mut calls, 4, 0x1000, &mut on_exception);
        assert_eq!(on_exception, [3]);
        assert_eq!(calls.end(1, |call| on_exception.push(call)), Some(1));
        assert_eq!(on_exception, [3, 4], "it was inside of 1");
        assert!(calls.0.iter().all(Option::is_none));
    }

    #[test]
    fn calls_that_are_left_take_no_room() {
        let mut calls = Calls([None; NESTING_LIMIT]);
        let mut on_exception = Vec::new();
        for instance in 0..10 {
            begin(&mut calls, instance, 0x9000 - instance as usize, &mut on_exception);
        }
        assert_eq!(calls.end(9, |call| on_exception.push(call)), Some(9));
        assert_eq!(on_exception.len() + calls.0.iter().flatten().count(), 9);
    }
}
