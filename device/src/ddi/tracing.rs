//! Tracers: callbacks before and after the functions of the API (zel_tracing_api.h, zel_tracing_register_cb.h).
//!
//! As with the real loader (since 1.24), they are called while the tracing layer is enabled: always with
//! `ZE_ENABLE_TRACING_LAYER=1`, and otherwise between `zelEnableTracingLayer` and `zelDisableTracingLayer`. A callback
//! receives pointers to the arguments, which it may change. Functions that are not implemented accept callbacks and
//! never call them: their arguments are not known.
//!
//! An entry point whose function is traced, or made to fail, jumps to [`slow_path`] with its arguments
//! unchanged. This is implemented for x86-64 only: elsewhere a tracer cannot be created.
//!
//! Must never call a callback from within a callback, never take a lock in a forked child, and never hold one while a
//! callback runs.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports, reason = "nothing can be traced"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::{arch::naked_asm, cell::Cell, collections::BTreeMap, env};

use parking_lot::{Condvar, Mutex, RwLock};

use super::TABLES;
use crate::ffi::handles::{Handle, object};
use crate::ffi::layout::{Extent, IpcHandle, TracerDesc};
use crate::ffi::result::{Outcome, ZeResult, call, call_teardown};
use crate::ffi::{In, Out};
use crate::platform::faults::{self, Gate};
use crate::platform::{log, process, settings};

/// `ZEL_REGISTER_PROLOGUE`; 1 is an epilogue (`zel_tracer_reg_t`).
const PROLOGUE: u32 = 0;
/// Words of registers with arguments (System V ABI for x86-64).
const REGISTERS: usize = 6;
/// The tables of `ze_callbacks_t` (ze_api.h), in its order. Each has the functions of API 1.0, in the order of the DDI
/// table.
const CORE: &str = "Global Driver Device Context CommandQueue CommandList Fence EventPool Event Image Module ModuleBuildLog \
                    Kernel Sampler PhysicalMem Mem VirtualMem";

/// The parameters of the function that has the most, one word each. A function with fewer gets words of
/// its caller's frame for the rest, and neither it nor a callback reads them.
const WORDS: [usize; 12] = [8; 12];
/// The sizes of the parameters of those functions that take structures by value, in bytes.
const WITH_STRUCTURES: [(&str, &[usize]); 8] = [
    ("zeCommandListAppendLaunchKernelWithArguments", &[8, 8, EXTENT, EXTENT, 8, 8, 8, 4, 8]),
    ("zeEventCounterBasedOpenIpcHandle", &[8, HANDLE, 8]),
    ("zeEventPoolOpenIpcHandle", &[8, HANDLE, 8]),
    ("zeEventPoolPutIpcHandle", &[8, HANDLE]),
    ("zeMemGetFileDescriptorFromIpcHandleExp", &[8, HANDLE, 8]),
    ("zeMemOpenIpcHandle", &[8, 8, HANDLE, 4, 8]),
    ("zeMemPutIpcHandle", &[8, HANDLE]),
    ("zexCounterBasedEventOpenIpcHandle", &[8, HANDLE, 8]),
];
const HANDLE: usize = size_of::<IpcHandle>();
const EXTENT: usize = size_of::<Extent>();

/// Whether the tracing layer is enabled from the start to the end of the process.
static ALWAYS: LazyLock<bool> =
    LazyLock::new(|| env::var_os("ZE_ENABLE_TRACING_LAYER").is_some_and(|value| value == "1"));
/// How many more calls have enabled it than disabled it.
static LAYER: AtomicUsize = AtomicUsize::new(0);
/// The enabled tracers, in the order in which they were enabled.
static ENABLED: RwLock<Vec<Arc<Tracer>>> = RwLock::new(Vec::new());

thread_local! {
    /// Whether this thread is in a traced function: functions that callbacks call are not traced.
    static TRACING: Cell<bool> = const { Cell::new(false) };
}

/// A callback: pointers to the arguments, the result, the tracer's data, and a place for data of this one call.
pub type Callback = Option<unsafe extern "C" fn(*const *mut u64, u64, usize, *mut usize)>;

/// An implemented function, with what a call with arguments as words needs.
pub struct TracePoint {
    /// Its fault, and how many tracers have a callback for it.
    pub(super) gate: &'static Gate,
    pub(super) name: &'static str,
    pub(super) function: *const (),
}

// SAFETY: the address is that of a function, the same for all threads and never written through.
unsafe impl Sync for TracePoint {}

/// The object of a `zel_tracer_handle_t`.
pub struct Tracer {
    data: usize,
    state: Mutex<TracerState>,
    /// How many traced calls use its callbacks at the moment.
    calls: Mutex<usize>,
    ended: Condvar,
}

#[derive(Default)]
struct TracerState {
    enabled: bool,
    /// Prologue and epilogue, by the address of the trace point.
    callbacks: BTreeMap<usize, [Callback; 2]>,
}

object!(Tracer);

/// `zelEnableTracingLayer` (ze_loader.h).
pub extern "C" fn enable_layer() -> ZeResult {
    LAYER.fetch_add(1, Ordering::Relaxed);
    ZeResult::SUCCESS
}

/// `zelDisableTracingLayer` (ze_loader.h).
pub extern "C" fn disable_layer() -> ZeResult {
    let _ = LAYER.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |enabled| enabled.checked_sub(1));
    ZeResult::SUCCESS
}

/// `zelGetTracingLayerState` (ze_loader.h).
pub extern "C" fn get_layer_state(enabled: Out<bool>) -> ZeResult {
    call(|| enabled.write(is_layer_enabled()))
}

fn is_layer_enabled() -> bool {
    *ALWAYS || LAYER.load(Ordering::Relaxed) > 0
}

/// `zelTracerCreate` (zel_tracing_api.h), also while the tracing layer is not enabled.
pub extern "C" fn create(desc: In<TracerDesc>, tracer: Out<Handle<Tracer>>) -> ZeResult {
    call(|| {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(ZeResult::UNINITIALIZED);
        }
        let data = desc.read()?.user_data;
        tracer.check()?;
        let state = Mutex::default();
        let calls = Mutex::default();
        let ended = Condvar::new();
        tracer.write(Handle::register(Arc::new(Tracer { data, state, calls, ended })))
    })
}

/// `zelTracerDestroy` (zel_tracing_api.h). Waits for the callbacks that run in other threads.
pub extern "C" fn destroy(tracer: Handle<Tracer>) -> ZeResult {
    call_teardown(|| {
        let tracer = tracer.retire()?;
        tracer.enable(false);
        // The call that this thread is in does not end before this one.
        let own = usize::from(TRACING.get());
        let mut calls = tracer.calls.lock();
        while *calls > own {
            tracer.ended.wait(&mut calls);
        }
        Ok(())
    })
}

/// `zelTracerSetEnabled` (zel_tracing_api.h).
pub extern "C" fn set_enabled(tracer: Handle<Tracer>, enable: u8) -> ZeResult {
    call(|| {
        tracer.get()?.enable(enable != 0);
        Ok(())
    })
}

/// `zelTracerSetPrologues` (zel_tracing_api.h), with a table of callbacks for the functions of API 1.0.
pub extern "C" fn set_prologues(tracer: Handle<Tracer>, callbacks: In<Callback>) -> ZeResult {
    call(|| tracer.get()?.set_core(PROLOGUE, callbacks))
}

/// `zelTracerSetEpilogues` (zel_tracing_api.h).
pub extern "C" fn set_epilogues(tracer: Handle<Tracer>, callbacks: In<Callback>) -> ZeResult {
    call(|| tracer.get()?.set_core(PROLOGUE + 1, callbacks))
}

/// `zelTracerResetAllCallbacks` (zel_tracing_register_cb.h). `INVALID_ARGUMENT` while the tracer is enabled.
pub extern "C" fn reset_all_callbacks(tracer: Handle<Tracer>) -> ZeResult {
    call(|| tracer.get()?.change(BTreeMap::clear))
}

/// The function `zelTracer…RegisterCallback` of the API function `name` (zel_tracing_register_cb.h).
/// `INVALID_ARGUMENT` while the tracer is enabled.
pub fn register(name: &str, tracer: Handle<Tracer>, kind: u32, callback: Callback) -> ZeResult {
    let result = call(|| {
        let tracer = tracer.get()?;
        if kind > 1 {
            return Err(ZeResult::INVALID_ENUMERATION);
        }
        let functions = TABLES.iter().flat_map(|table| table.functions);
        let point = functions.filter(|function| function.name == name).find_map(|function| function.point);
        tracer.change(|callbacks| set(callbacks, point, kind, callback))
    });
    say_why(&format!("{}RegisterCallback", name.replacen("ze", "zelTracer", 1)), result.0);
    result
}

fn set(callbacks: &mut BTreeMap<usize, [Callback; 2]>, point: Option<&TracePoint>, kind: u32, callback: Callback) {
    let Some(point) = point else { return };
    let entry = callbacks.entry(address(point)).or_default();
    if let Some(place) = entry.get_mut(kind as usize) {
        *place = callback;
    }
    if *entry == [None; 2] {
        callbacks.remove(&address(point));
    }
}

fn address(point: &TracePoint) -> usize {
    std::ptr::from_ref(point).addr()
}

/// The functions of `ze_callbacks_t`, in its order.
fn core_functions() -> impl Iterator<Item = &'static super::Function> {
    let table = |name: &str| TABLES.iter().find(|table| table.getter == format!("zeGet{name}ProcAddrTable"));
    let functions = CORE.split(' ').filter_map(table).flat_map(|table| table.functions);
    functions.filter(|function| function.since == 0)
}

impl Tracer {
    /// Changes the callbacks: `INVALID_ARGUMENT` while the tracer is enabled.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<usize, [Callback; 2]>)) -> Outcome {
        let mut state = self.state.lock();
        if state.enabled {
            return Err(ZeResult::INVALID_ARGUMENT);
        }
        change(&mut state.callbacks);
        Ok(())
    }

    fn set_core(&self, kind: u32, table: In<Callback>) -> Outcome {
        table.check()?;
        self.change(|callbacks| {
            for (index, function) in core_functions().enumerate() {
                // SAFETY: ze_callbacks_t has a callback for each of these functions.
                let callback = unsafe { table.element(index) }.read().ok().flatten();
                set(callbacks, function.point, kind, callback);
            }
        })
    }

    fn enable(self: &Arc<Self>, enable: bool) {
        let mut state = self.state.lock();
        if state.enabled == enable {
            return;
        }
        state.enabled = enable;
        let mut enabled = ENABLED.write();
        if enable {
            enabled.push(Arc::clone(self));
        } else {
            enabled.retain(|other| !Arc::ptr_eq(self, other));
        }
        drop(enabled);
        let points = TABLES.iter().flat_map(|table| table.functions).filter_map(|function| function.point);
        for point in points.filter(|point| state.callbacks.contains_key(&address(point))) {
            point.gate.count_tracer(enable);
        }
    }

    /// Its callbacks for a function, if it has any. The caller reports the end of the call.
    fn begin(&self, point: &TracePoint) -> Option<[Callback; 2]> {
        let state = self.state.lock();
        let found = state.callbacks.get(&address(point)).copied().filter(|_| state.enabled)?;
        *self.calls.lock() += 1;
        Some(found)
    }

    fn end(&self) {
        *self.calls.lock() -= 1;
        self.ended.notify_all();
    }
}

/// A traced call, as one tracer sees it.
#[cfg(target_arch = "x86_64")]
struct TracedCall {
    tracer: Arc<Tracer>,
    callbacks: [Callback; 2],
    /// Data of the tracer for this call.
    data: usize,
}

/// Where the arguments of a call are: pointers to them, and how many words of the stack they take (System V ABI for
/// x86-64). All parameters of the API are integers, pointers, and structures of them.
#[cfg(target_arch = "x86_64")]
fn arguments(sizes: &[usize], registers: *mut u64, stack: *mut u64) -> (Vec<*mut u64>, usize) {
    let mut in_registers = 0;
    let mut on_stack = 0;
    let places = sizes.iter().map(|size| {
        let words = size.div_ceil(8);
        if words <= 2 && in_registers + words <= REGISTERS {
            in_registers += words;
            registers.wrapping_add(in_registers - words)
        } else {
            on_stack += words;
            stack.wrapping_add(on_stack - words)
        }
    });
    let places = places.collect();
    (places, on_stack)
}

/// Says why a call has returned `result`, if that is an error.
pub(super) fn say_why(name: &str, result: u32) {
    let result = ZeResult(result);
    let reason = log::take_reason();
    if !faults::has_result(name) {
        // It has refused the call if there is a reason.
        if let Some((_, reason)) = reason {
            log::note(&format!("{name}: {reason}"));
        }
        return;
    }
    let is_answer = matches!(result, ZeResult::QUERY_TRUE | ZeResult::QUERY_FALSE);
    if !result.is_error() || is_answer {
        return;
    }
    let code = format!("result {:#x}", result.0);
    let (code, meaning) = result.described().unwrap_or((&code, "the call was refused"));
    let reason =
        reason.filter(|(known, _)| *known == result.0).map_or_else(|| meaning.to_owned(), |(_, reason)| reason);
    log::note(&format!("{name}: {reason} ({code})"));
}

/// Calls the function of a trace point with the callbacks around it, or returns its fault instead.
#[cfg(target_arch = "x86_64")]
extern "C" fn intercept(point: &TracePoint, registers: *mut u64, stack: *mut u64) -> u64 {
    let with_structures = WITH_STRUCTURES.iter().find(|(name, _)| *name == point.name);
    let sizes = with_structures.map_or(&WORDS[..], |(_, sizes)| *sizes);
    let (places, words) = arguments(sizes, registers, stack);
    let is_logged = point.gate.is_logged() && settings::get().log;
    let invoke = || {
        log::take_reason();
        let result = match point.gate.code() {
            // SAFETY: the arguments are those that the caller has passed, or what callbacks have put in their places.
            0 => unsafe { invoke(point.function, registers, stack, words) },
            code => u64::from(ZeResult(code).because(|| "ZE_SOFT_FAIL wants it").0),
        };
        if is_logged {
            say_why(point.name, result as u32);
        }
        result
    };
    if !point.gate.is_traced() || !is_layer_enabled() || process::is_forked_child() || TRACING.replace(true) {
        return invoke();
    }
    let enabled = ENABLED.read().clone();
    let seen = enabled.into_iter().filter_map(|tracer| {
        let callbacks = tracer.begin(point)?;
        Some(TracedCall { tracer, callbacks, data: 0 })
    });
    let mut seen: Vec<_> = seen.collect();
    let mut run = |which: usize, result: u64| {
        for seen in &mut seen {
            if let Some(Some(callback)) = seen.callbacks.get(which) {
                // SAFETY: the tracer has registered a callback for this function, whose parameters these are.
                unsafe { callback(places.as_ptr(), result, seen.tracer.data, &raw mut seen.data) };
            }
        }
    };
    run(0, 0);
    let result = invoke();
    run(1, result);
    TRACING.set(false);
    for seen in seen {
        seen.tracer.end();
    }
    result
}

/// Where an entry point continues if its gate is closed. All registers are as its caller set them,
/// except r11, which points to its trace point.
///
/// # Safety
/// Only entry points may jump here.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn slow_path() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 48",
        "mov [rbp - 48], rdi",
        "mov [rbp - 40], rsi",
        "mov [rbp - 32], rdx",
        "mov [rbp - 24], rcx",
        "mov [rbp - 16], r8",
        "mov [rbp - 8], r9",
        "mov rdi, r11",
        "lea rsi, [rbp - 48]",
        "lea rdx, [rbp + 16]",
        "call {intercept}",
        "leave",
        "ret",
        intercept = sym intercept,
    );
}

/// Calls a function with arguments in registers and, as many words as it takes, on the stack.
///
/// # Safety
/// They must be the arguments of the function.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn invoke(function: *const (), registers: *const u64, stack: *const u64, words: usize) -> u64 {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "mov rax, rdi",
        "mov r11, rsi",
        "mov rsi, rdx",
        "lea r10, [rcx * 8]",
        "sub rsp, r10",
        "and rsp, -16",
        "mov rdi, rsp",
        "rep movsq",
        "mov rdi, [r11]",
        "mov rsi, [r11 + 8]",
        "mov rdx, [r11 + 16]",
        "mov rcx, [r11 + 24]",
        "mov r8, [r11 + 32]",
        "mov r9, [r11 + 40]",
        "call rax",
        "leave",
        "ret",
    );
}
