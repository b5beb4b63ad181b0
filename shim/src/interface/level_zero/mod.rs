//! The entry point for Level Zero: the tables that a loader asks a driver for, those that the driver's handles begin
//! with, and the functions that `zeDriverGetExtensionFunctionAddress` returns. How its structures are read is in
//! [`structures`].
//!
//! These see each call once, on the caller's thread and stack, whether the program calls a symbol or a result of
//! dlsym(3). No symbol of Level Zero is exported: programs probe for functions that their loader lacks. The software
//! device fills its tables through dlsym(3), as a loader does.
//!
//! Calls of Unified Runtime's adapters, directly or through libumf, are part of a call that is recorded already; they
//! are passed on. Loaders and layers, which export getters of the same names, are not hooked.

mod extensions;
mod handle_tables;
mod structures;

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use urscope_schema::api::{Function, LEVEL_ZERO, ResultCode, Table};
use urscope_schema::trace::records::LEVEL_ZERO_DRIVER;

use super::{Interface, Lookup, driver, hooks};
use crate::call::Origin;
use crate::raw::args::row::{Call, Callee, Frame};
use crate::raw::originals::{self, original};
use crate::raw::{late_functions, software_device, symbols::modules::Module, threads::mutex::Mutex};
use crate::sharing::synchronization;

/// The most drivers in a process: one for each kind of device.
const DRIVERS: usize = 4;

/// The interface.
pub(super) struct LevelZero;

impl Interface for LevelZero {
    fn call(&self, via: usize, function: Function, frame: Frame) -> ResultCode {
        let original = original(via, function);
        if original.is_null() {
            return LEVEL_ZERO.result(ResultCode::UNSUPPORTED_FEATURE);
        }
        // What the runtime does with its queues is part of one of its own calls. It does that with each kernel.
        if function.effect().is_passed_on() && driver::is_call_of_runtime() {
            // SAFETY: as below.
            return unsafe { frame.pass_on(function, original) };
        }
        // SAFETY: the stored function has the row's signature (`ze_api.h`, and `zex_memory.h` of Intel's driver).
        let mut call = unsafe { Call::new(function, &structures::Structures, frame, Callee::Function(original)) };
        driver::pass(&mut call, false, || {
            report_once(via);
            Origin::Driver
        })
    }

    fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup> {
        let table = Table::of_getter(name.to_bytes()).filter(|table| table.interface() == &LEVEL_ZERO)?;
        // SAFETY: the symbol of a getter is one.
        Some(Lookup::Found(unsafe { getter(table, real()) }))
    }
}

/// The tables in which functions are replaced.
const TABLES: [Table; 13] = [
    Table::ZeMem,
    Table::ZeContext,
    Table::ZeEventPool,
    Table::ZeCommandList,
    Table::ZeCommandListExp,
    Table::ZeCommandQueue,
    Table::ZeFence,
    Table::ZeEvent,
    Table::ZeEventExp,
    Table::ZeDevice,
    Table::ZeMemExp,
    Table::ZePhysicalMem,
    Table::ZeVirtualMem,
];

/// The slots of `zeDriverGetProperties` and `zeDriverGetExtensionFunctionAddress` in `ze_driver_dditable_t`, and the
/// minor versions that added them. They have no rows.
const DRIVER_FUNCTIONS: [(usize, u32); 2] = [(2, 0), (5, 1)];

/// The indices in [`DRIVER_FUNCTIONS`].
const PROPERTIES: usize = 0;
const EXTENSION_ADDRESS: usize = 1;

/// Symbols that loaders and layers export, and drivers do not.
const LOADERS: [&CStr; 2] = [c"zelLoaderGetVersion", c"zelLoaderGetVersions"];

type Getter = unsafe extern "C" fn(u32, *mut *mut c_void) -> ResultCode;
type Properties = unsafe extern "C" fn(*mut c_void, *mut c_void) -> ResultCode;
type ExtensionAddress = unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_void) -> ResultCode;

/// A driver's own functions.
struct Driver {
    getters: [AtomicPtr<c_void>; TABLES.len()],
    /// The getter of its `ze_driver_dditable_t`.
    table_getter: AtomicPtr<c_void>,
    originals: [AtomicPtr<c_void>; DRIVER_FUNCTIONS.len()],
    /// The API version of the latest table that it was asked for.
    version: AtomicU32,
    /// Whether the tables of its handles were searched.
    tables_replaced: AtomicBool,
    reported: AtomicBool,
}

static DRIVER_STATES: [Driver; DRIVERS] = [const {
    Driver {
        getters: [const { AtomicPtr::new(null_mut()) }; TABLES.len()],
        table_getter: AtomicPtr::new(null_mut()),
        originals: [const { AtomicPtr::new(null_mut()) }; DRIVER_FUNCTIONS.len()],
        version: AtomicU32::new(0),
        tables_replaced: AtomicBool::new(false),
        reported: AtomicBool::new(false),
    }
}; DRIVERS];

/// The libraries of the drivers, by number.
static MODULES: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// The result of a lookup of the getter of `table`, which found `real`.
///
/// # Safety
///
/// `real` is what `dlsym` found under the name of the getter of `table`.
unsafe fn getter(table: Table, real: *mut c_void) -> *mut c_void {
    let Some(via) = number(real) else { return real };
    let Some(driver) = DRIVER_STATES.get(via) else { return real };
    let place = TABLES.iter().position(|known| *known == table);
    let original = place.map_or(Some(&driver.table_getter), |place| driver.getters.get(place));
    let Some(original) = original else { return real };
    original.store(real, Ordering::Release);
    table_hook(via, place).unwrap_or(real)
}

/// The number of the driver that has a getter; `None` if it is no driver, or there is no room for another one.
fn number(getter: *mut c_void) -> Option<usize> {
    let module = Module::containing(getter as usize)?;
    late_functions::find_all();
    let mut modules = MODULES.lock();
    if let Some(via) = modules.iter().position(|known| *known == module) {
        return Some(via);
    }
    let is_loader = LOADERS.iter().any(|name| module.exports(name));
    let is_software = module.exports(software_device::SYMBOL);
    if modules.len() == DRIVERS || is_loader && !is_software {
        return None;
    }
    modules.push(module.clone());
    let via = modules.len() - 1;
    drop(modules);
    if is_software {
        software_device::found(&module);
    }
    Some(via)
}

/// The hook of the getter of a table of driver `via`, by its index in [`TABLES`]; of the `ze_driver_dditable_t` for
/// `None`.
fn table_hook(via: usize, place: Option<usize>) -> Option<*mut c_void> {
    macro_rules! hooks {
        ([$($via:literal)*] $tables:tt) => {
            [$(hooks!(@driver $via $tables)),*]
        };
        (@driver $via:literal [$($table:literal)*]) => {
            [$(table_getter::<$via, $table> as *mut c_void,)* driver_getter::<$via> as *mut c_void]
        };
    }
    let hooks: [[*mut c_void; TABLES.len() + 1]; DRIVERS] = hooks!([0 1 2 3] [0 1 2 3 4 5 6 7 8 9 10 11 12]);
    hooks.get(via)?.get(place.unwrap_or(TABLES.len())).copied()
}

#[unsafe(naked)]
unsafe extern "C" fn table_getter<const VIA: usize, const TABLE: usize>() {
    naked_asm!("mov edx, {via}", "mov ecx, {table}", "jmp {to}", via = const VIA, table = const TABLE, to = sym get_table)
}

#[unsafe(naked)]
unsafe extern "C" fn driver_getter<const VIA: usize>() {
    naked_asm!("mov edx, {via}", "jmp {to}", via = const VIA, to = sym get_driver)
}

/// Takes a call of the getter of a table of driver `via`, by its index in [`TABLES`].
///
/// # Safety
///
/// `into` is null or a table of the API version `version` (`ze_ddi.h`).
unsafe extern "C" fn get_table(version: u32, into: *mut *mut c_void, via: usize, table: usize) -> ResultCode {
    let driver = DRIVER_STATES.get(via);
    let getter = driver.and_then(|driver| driver.getters.get(table));
    // SAFETY: the caller's promise.
    let result = unsafe { fill(getter, version, into) };
    if let Some(driver) = driver.filter(|_| result.is_success()) {
        driver.version.store(version, Ordering::Relaxed);
    }
    let Some(table) = TABLES.get(table).filter(|_| result.is_success() && !into.is_null()) else { return result };
    let filled = table.slots(version & 0xffff);
    for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == *table) {
        let (_, slot) = function.slot();
        if slot < filled {
            // SAFETY: a table of this version has this slot.
            unsafe { replace(via, into.add(slot), function) };
        }
    }
    result
}

/// Takes a call of `zeGetDriverProcAddrTable` of driver `via`.
///
/// # Safety
///
/// As for [`get_table`].
unsafe extern "C" fn get_driver(version: u32, into: *mut *mut c_void, via: usize) -> ResultCode {
    let Some(driver) = DRIVER_STATES.get(via) else { return LEVEL_ZERO.result(ResultCode::UNSUPPORTED_FEATURE) };
    // SAFETY: the caller's promise.
    let result = unsafe { fill(Some(&driver.table_getter), version, into) };
    if !result.is_success() || into.is_null() {
        return result;
    }
    for ((which, (slot, since)), original) in DRIVER_FUNCTIONS.iter().enumerate().zip(&driver.originals) {
        if version & 0xffff < *since {
            continue;
        }
        // SAFETY: a table of this version has this slot.
        let slot = unsafe { into.add(*slot) };
        // SAFETY: as above.
        let real = unsafe { *slot };
        let hook_address = driver_hook(via, which);
        if !real.is_null() && real != hook_address {
            original.store(real, Ordering::Release);
            // SAFETY: as above.
            unsafe { put(slot, hook_address) };
        }
    }
    result
}

/// The hook of a function of driver `via`, by its index in [`DRIVER_FUNCTIONS`].
fn driver_hook(via: usize, which: usize) -> *mut c_void {
    macro_rules! hooks {
        ($($via:literal)*) => {
            [$([properties_hook::<$via> as *mut c_void, extension_address_hook::<$via> as *mut c_void]),*]
        };
    }
    let hooks: [[*mut c_void; DRIVER_FUNCTIONS.len()]; DRIVERS] = hooks!(0 1 2 3);
    hooks.get(via).and_then(|hooks| hooks.get(which)).copied().unwrap_or(null_mut())
}

#[unsafe(naked)]
unsafe extern "C" fn properties_hook<const VIA: usize>() {
    naked_asm!("mov edx, {via}", "jmp {to}", via = const VIA, to = sym properties)
}

#[unsafe(naked)]
unsafe extern "C" fn extension_address_hook<const VIA: usize>() {
    naked_asm!(crate::store_caller!(), "mov ecx, {via}", "jmp {to}", via = const VIA, to = sym extension_address)
}

/// The driver's own function, by its index in [`DRIVER_FUNCTIONS`].
///
/// # Safety
///
/// `F` is the type of the function.
unsafe fn driver_function<F: Copy>(via: usize, which: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let real = DRIVER_STATES.get(via)?.originals.get(which)?.load(Ordering::Acquire);
    // SAFETY: the caller's promise, and as wide as a pointer.
    (!real.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&real) })
}

/// Stores a function atomically in a slot that other threads may call through.
///
/// # Safety
///
/// `slot` may be written.
unsafe fn put(slot: *mut *mut c_void, function: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { AtomicPtr::from_ptr(slot) }.store(function, Ordering::Release);
}

/// Calls the driver's getter of a table.
///
/// # Safety
///
/// As for [`get_table`].
unsafe fn fill(getter: Option<&AtomicPtr<c_void>>, version: u32, into: *mut *mut c_void) -> ResultCode {
    let real = getter.map_or(null_mut(), |real| real.load(Ordering::Acquire));
    if real.is_null() {
        return LEVEL_ZERO.result(ResultCode::UNSUPPORTED_FEATURE);
    }
    // SAFETY: it comes from `getter`, whose caller promises that it is a getter, which has this signature (`ze_ddi.h`).
    let real = unsafe { std::mem::transmute::<*mut c_void, Getter>(real) };
    // SAFETY: the caller's promise.
    unsafe { real(version, into) }
}

/// Puts a hook into a slot, and stores the function that is there.
///
/// # Safety
///
/// `slot` holds the driver's implementation of `function`, the hook or null, and may be written.
unsafe fn replace(via: usize, slot: *mut *mut c_void, function: Function) {
    // SAFETY: the caller's promise.
    let real = unsafe { *slot };
    let hook_address = hooks::hook(function, via);
    if let Some(original) = originals::slot(via, function)
        && !real.is_null()
        && real != hook_address
    {
        original.store(real, Ordering::Release);
        // SAFETY: the caller's promise.
        unsafe { put(slot, hook_address) };
    }
}

/// Takes a call of `zeDriverGetProperties` of driver `via`. A loader calls it to see whether handles begin with tables,
/// before it uses these.
///
/// # Safety
///
/// As for the real function: `about` is a `ze_driver_properties_t` (`ze_api.h`).
unsafe extern "C" fn properties(driver: *mut c_void, about: *mut c_void, via: usize) -> ResultCode {
    // SAFETY: this slot has a function of this type (`ze_api.h`).
    let real = unsafe { driver_function::<Properties>(via, PROPERTIES) };
    let Some(real) = real else { return LEVEL_ZERO.result(ResultCode::UNSUPPORTED_FEATURE) };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(driver, about) };
    if result.is_success() && extensions::have_tables(about.expose_provenance()) {
        // SAFETY: the driver has this extension, and this is its handle.
        unsafe { handle_tables::replace_in_handle(via, driver) };
    }
    result
}

/// Takes a call of `zeDriverGetExtensionFunctionAddress` of driver `via`.
///
/// # Safety
///
/// As for the real function: `name` is a C string, and `address` a variable for a pointer (`ze_api.h`).
unsafe extern "C" fn extension_address(
    driver: *mut c_void,
    name: *const c_char,
    address: *mut *mut c_void,
    via: usize,
) -> ResultCode {
    // SAFETY: this slot has a function of this type (`ze_api.h`).
    let real = unsafe { driver_function::<ExtensionAddress>(via, EXTENSION_ADDRESS) };
    let Some(real) = real else { return LEVEL_ZERO.result(ResultCode::UNSUPPORTED_FEATURE) };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(driver, name, address) };
    if !result.is_success() || name.is_null() || address.is_null() {
        return result;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let function = name.to_str().ok().and_then(Function::from_name);
    // It adds commands that are not seen, or waits where the state of an event is.
    let is_of_order =
        name.to_str().is_ok_and(|name| name.starts_with("zexCommandListAppend") || name.contains("DeviceAddress"));
    if function.is_none() && is_of_order && !driver::is_call_of_runtime() {
        synchronization::expose();
    }
    if let Some(function) = function.filter(|function| function.slot().0 == Table::ZeExtension) {
        // SAFETY: the driver has just written the address of its function there.
        unsafe { replace(via, address, function) };
    }
    result
}

/// Reports the driver at its first recorded call, so that it is not in the trace of a process that only runs kernels.
fn report_once(via: usize) {
    let Some(driver) = DRIVER_STATES.get(via) else { return };
    if driver.reported.load(Ordering::Relaxed) {
        return;
    }
    // This may be a signal handler that interrupted the holder of the lock: the next call reports then.
    let Some(module) = MODULES.try_lock().map(|modules| modules.get(via).cloned()) else { return };
    if driver.reported.swap(true, Ordering::Relaxed) {
        return;
    }
    let is_own = |function: &&Function| function.interface() == &LEVEL_ZERO;
    let replaced = |function: &&Function| !original(via, **function).is_null();
    let functions: Vec<_> = Function::ALL.iter().filter(is_own).filter(replaced).copied().collect();
    driver::report(LEVEL_ZERO_DRIVER, module.as_ref(), &functions);
}
