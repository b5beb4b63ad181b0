//! The second entry point: exported functions, for programs that link a Unified Runtime loader.
//!
//! An export passes a call on unrecorded if the loader has the function, because the adapter's table records it.
//! Otherwise the call goes through the hook to the adapter of its handle, or to urscope's backend.
//! A call that no backend implements is recorded here and returns UNSUPPORTED_FEATURE. No call may be recorded twice.
//!
//! An adapter with visible symbols exports such functions, too. The dynamic loader binds its internal calls to
//! urscope's exports, which pass them on to the adapter's own function, unrecorded: they are part of another call.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use urscope_schema::api::{Function, ResultCode};
use urscope_schema::trace::records::EntryPoint;

use super::{frequent::hook, structures};
use crate::backend::adapter::{self, ADAPTERS, registry};
use crate::interface::hooks;
use crate::raw::args::inputs::Arguments;
use crate::raw::args::row::{Call, Callee, Frame, RealCall as _};
use crate::raw::symbols::modules::{self, Module};
use crate::raw::symbols::real_dlsym;
use crate::raw::{call_stacks::caller, processes::fork};
use crate::{backend, chain, knobs, layer::trace};

/// Marks a function that was not found. It is never called.
const ABSENT: *mut c_void = std::ptr::without_provenance_mut(1);

static NEXT: [AtomicPtr<c_void>; Function::COUNT] = [const { AtomicPtr::new(null_mut()) }; Function::COUNT];

/// The functions of each library in the cache of [`caller`]: null before the lookup, [`ABSENT`] if the library does
/// not define it.
static CALLER_FUNCTIONS: [[AtomicPtr<c_void>; Function::COUNT]; caller::LIBRARY_LIMIT] =
    [const { [const { AtomicPtr::new(null_mut()) }; Function::COUNT] }; caller::LIBRARY_LIMIT];

/// The function that the calling library defines itself; null if it has none.
fn caller_function(function: Function) -> *mut c_void {
    let address = caller::address();
    let slot = caller::library(address).and_then(|library| CALLER_FUNCTIONS.get(library)?.get(function as usize));
    let mut own = slot.map_or(null_mut(), |slot| slot.load(Ordering::Acquire));
    if own.is_null() {
        own = find_in_caller(function, address);
        if let Some(slot) = slot {
            slot.store(own, Ordering::Release);
        }
    }
    if own == ABSENT { null_mut() } else { own }
}

#[cold]
fn find_in_caller(function: Function, address: usize) -> *mut c_void {
    let own = || {
        let name = CString::new(function.name()).ok()?;
        let module = Module::containing(address)?;
        // An adapter that urscope called may have jumped here.
        if Module::containing(find_in_caller as *const () as usize)? == module {
            return None;
        }
        modules::symbol_of(address, &name)
    };
    own().map_or(ABSENT, std::ptr::with_exposed_provenance_mut)
}

/// The next function of this name after the export, or null.
fn next(function: Function) -> *mut c_void {
    let Some(slot) = NEXT.get(function as usize) else { return null_mut() };
    let mut next = slot.load(Ordering::Acquire);
    if next.is_null() {
        next = find_next(function);
        if slot.compare_exchange(null_mut(), next, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            report(function, next);
        }
    }
    if next == ABSENT { null_mut() } else { next }
}

fn find_next(function: Function) -> *mut c_void {
    let Ok(name) = CString::new(function.name()) else { return ABSENT };
    // SAFETY: `RTLD_NEXT` is always allowed.
    let following = unsafe { real_dlsym::real(libc::RTLD_NEXT, &name) };
    if !following.is_null() {
        return following;
    }
    // RTLD_NEXT does not find a loader that was opened with RTLD_LOCAL, as by Python.
    modules::find("libur_loader.so.0", &name).map_or(ABSENT, std::ptr::with_exposed_provenance_mut)
}

fn report(function: Function, next: *mut c_void) {
    if knobs::is_excluded() {
        return;
    }
    // The adapter handles the call, which came from it.
    if next == ABSENT && (0..ADAPTERS).any(|via| adapter::has(via, function)) {
        return;
    }
    let module = if next == ABSENT { None } else { Module::containing(next as usize) };
    let ours = module.is_none() && (0..ADAPTERS).any(|via| backend::uses_level_zero(function, via));
    trace::entry_point(&EntryPoint {
        kind: "exported-symbol".into(),
        library: module.as_ref().map(Module::file_name).unwrap_or_default(),
        directory: module.as_ref().map(Module::directory).unwrap_or_default(),
        functions: vec![function.name().into()],
        problem: if module.is_some() || ours { String::new() } else { "no loaded library has this function".into() },
        ..EntryPoint::default()
    });
    if ours {
        tracing::info!(
            "{} was called, which this Unified Runtime does not have; urscope's own backend implements it",
            function.name()
        );
    } else if module.is_none() {
        tracing::warn!(
            "{} was called, which this Unified Runtime does not have; it returns UR_RESULT_ERROR_UNSUPPORTED_FEATURE",
            function.name()
        );
    }
}

/// What an exported function, which has noted its caller, jumps to.
pub(super) fn target(function: Function) -> *mut c_void {
    let own = caller_function(function);
    let next = if own.is_null() { next(function) } else { own };
    if next.is_null() { hooks::hook(function, hooks::ABSENT) } else { next }
}

/// Takes a call of a function that no loader has.
pub(super) fn absent(function: Function, frame: Frame) -> ResultCode {
    // SAFETY: it is called only with another callee.
    let call = unsafe { Call::new(function, &structures::Structures, frame, adapter::ABSENT) };
    match implementation(function, call.arguments()) {
        // SAFETY: the adapter's function and its hook have the row's signature.
        Some(implementation) => unsafe { call.with_callee(Callee::Function(implementation)) }.make(),
        None => refuse(function, call.arguments()),
    }
}

/// The implementation of a function that no loader has: the hook, if urscope's backend implements it for the adapter
/// of the handle. Otherwise the adapter's function: an adapter with visible symbols calls itself by a jump, which has
/// the return address of its caller.
fn implementation(function: Function, arguments: &Arguments) -> Option<*mut c_void> {
    let via = registry::adapter_of(arguments.handle()?)?;
    if backend::uses_level_zero(function, via) || function.is_ipc() && adapter::has(via, function) {
        Some(hook(function, via))
    } else {
        adapter::implementation(via, function)
    }
}

/// Records a call that no backend implements. If urscope's could, the adapter's handle is missing.
fn refuse(function: Function, arguments: &Arguments) -> ResultCode {
    fork::notice();
    let hot = knobs::hot();
    let values = arguments.values();
    let nulls = arguments.nulls();
    let entered = chain::enter::<false>(hot, function, values, nulls);
    let is_own = (0..ADAPTERS).any(|via| backend::uses_level_zero(function, via));
    let fault = if is_own { nulls.fault(function, values) } else { None };
    let refused = fault.map_or(ResultCode::UNSUPPORTED_FEATURE, |fault| fault.answer);
    chain::exit::<false>(hot, function, entered.call, entered.answer.unwrap_or(refused), None)
}
