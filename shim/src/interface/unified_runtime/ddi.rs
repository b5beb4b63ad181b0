//! The main entry point: the tables through which a loader calls an adapter.
//!
//! A loader asks an adapter for its tables by `urGet<Table>ProcAddrTable`. With one adapter, it calls through these
//! tables. With several, it calls through the adapter's dispatch table, which the first word of every handle points
//! at. Functions are replaced in both: in the tables when a loader asks for them, and in the dispatch table when the
//! adapter makes its first handle (`urAdapterGet`).
//!
//! Releases with the same version number have different dispatch tables, so slots are found by content: the adapter
//! fills a table of urscope's, and the same pointers are searched for. A table that is not found exactly once stays
//! unchanged.

use std::arch::naked_asm;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{collections::BTreeSet, ops::Range, ptr::null_mut, sync::OnceLock};

use urscope_schema::api::{Function, ResultCode, Table, UNIFIED_RUNTIME, unified_runtime::VERSION};
use urscope_schema::trace::records::{ADAPTER_TABLE, EntryPoint, INLINE, XPTI};

use super::frequent::hook;
use crate::backend::Family;
use crate::backend::adapter::{self, ADAPTERS, registry};
use crate::knobs::{self, Entry};
use crate::layer::trace;
use crate::raw::symbols::modules::{self, Module};
use crate::raw::{args::AdapterHandle, late_functions, threads::mutex::Mutex};
use crate::sharing::synchronization;

/// The number of slots of a dispatch table that are searched. The largest known table has 241.
const DISPATCH_TABLE_LIMIT: usize = 1024;

type AdapterGet = unsafe extern "C" fn(u32, *mut usize, *mut u32) -> ResultCode;

/// The adapters' own `urAdapterGet`.
static ADAPTER_GETS: [AtomicPtr<c_void>; ADAPTERS] = [const { AtomicPtr::new(null_mut()) }; ADAPTERS];

/// An adapter. Its number is its index in [`KNOWN_ADAPTERS`].
#[derive(Debug)]
struct AdapterEntry {
    /// The library of the adapter.
    module: Module,
    interception: Interception,
    reported: bool,
}

/// How the calls of an adapter reach urscope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interception {
    Tables,
    /// Its code is changed, and its tables are not.
    #[cfg(feature = "frida-gum")]
    Code,
    /// XPTI shows its calls, and its tables are not changed.
    Observed,
}

static KNOWN_ADAPTERS: Mutex<Vec<AdapterEntry>> = Mutex::new(Vec::new());

/// The result of a loader's lookup of the getter of `table`, which found `real`.
///
/// # Safety
///
/// `real` is what `dlsym` found under the name of the getter of `table`.
pub(super) unsafe fn getter(table: Table, real: *mut c_void) -> *mut c_void {
    if knobs::read().entry == Entry::Xpti {
        return real;
    }
    let replaced = adapter_number(real).and_then(|via| Some((via, getter_hook(table, via)?)));
    match replaced {
        // SAFETY: the caller's promise; `adapter_number` knows that it is an adapter's.
        Some((via, hook_address)) if unsafe { registry::store_getter(via, table, real) } => hook_address,
        _ => real,
    }
}

/// The number of the adapter that has a getter; `None` if it is no adapter, or there is no room for another one.
fn adapter_number(getter: *mut c_void) -> Option<usize> {
    let module = Module::containing(getter as usize)?;
    // Found now, because signal handlers and cancellations may need them during a call.
    late_functions::find_all();
    let mut adapters = KNOWN_ADAPTERS.lock();
    if let Some(via) = adapters.iter().position(|known| known.module == module) {
        return adapters.get(via).filter(|known| known.interception == Interception::Tables).map(|_| via);
    }
    // A loader exports getters of the same names for its clients.
    if module.exports(c"urLoaderInit") || adapters.len() == ADAPTERS {
        return None;
    }
    adapters.push(AdapterEntry { module, interception: Interception::Tables, reported: false });
    Some(adapters.len() - 1)
}

/// Adds an adapter whose calls reach urscope in another way than by its tables, which are no longer changed; returns
/// its number, or `None` if there is no room.
pub(super) fn add_adapter(interception: Interception, module: Module) -> Option<usize> {
    let mut adapters = KNOWN_ADAPTERS.lock();
    if adapters.len() == ADAPTERS {
        return None;
    }
    adapters.push(AdapterEntry { module, interception, reported: true });
    Some(adapters.len() - 1)
}

/// Whether the code of an adapter in this library is changed.
pub(super) fn is_inline(module: &Module) -> bool {
    let is_code = |known: &AdapterEntry| !matches!(known.interception, Interception::Tables | Interception::Observed);
    KNOWN_ADAPTERS.lock().iter().any(|known| is_code(known) && known.module.base == module.base)
}

/// Whether this library contains a known adapter.
pub fn is_known(module: &Module) -> bool {
    KNOWN_ADAPTERS.lock().iter().any(|known| known.module.base == module.base)
}

#[unsafe(naked)]
unsafe extern "C" fn table_getter<const TABLE: usize, const VIA: usize>() {
    naked_asm!("mov edx, {table}", "mov ecx, {via}", "jmp {to}", table = const TABLE, via = const VIA, to = sym get_table)
}

/// Takes a call of the getter of a table of adapter `via`.
///
/// # Safety
///
/// `into` is null or a table of the API version `version` (`ur_ddi.h`).
unsafe extern "C" fn get_table(version: u32, into: *mut *mut c_void, table: usize, via: usize) -> ResultCode {
    let Some((table, real)) = Table::ALL.get(table).and_then(|table| Some((*table, registry::getter(via, *table)?)))
    else {
        return ResultCode::UNSUPPORTED_FEATURE;
    };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(version, into) };
    if !result.is_success() || into.is_null() {
        return result;
    }
    if version != VERSION {
        report_version(via, version);
        return result;
    }
    let filled = registry::query_table(via, table);
    // SAFETY: the adapter has just filled `filled.len()` slots of the caller's table; no other is touched.
    unsafe { replace_slots(table, via, into, &filled) };
    if table == Table::Adapter {
        // SAFETY: as above; the first slot of this table is `pfnGet` (`ur_ddi.h`).
        unsafe { replace_adapter_get(via, into) };
    }
    result
}

fn getter_hook(table: Table, via: usize) -> Option<*mut c_void> {
    macro_rules! of_tables {
        ($($t:literal)*) => {
            match table as usize {
                $($t => adapter::for_adapter!(self::table_getter<$t>, via),)*
                _ => None,
            }
        };
    }
    const { assert!(Table::ZeMem as usize == 15 && ADAPTERS == 8, "each has a getter") };
    of_tables!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}

/// The adapter's implementation of a function for which its table has `original`; `None` if there is none. For an
/// adapter with visible symbols, the dynamic loader may have put in urscope's export instead.
fn implementation(via: usize, function: Function, original: *mut c_void) -> Option<*mut c_void> {
    if !is_urscope_code(original as usize) {
        return Some(original).filter(|original| !original.is_null());
    }
    let name = CString::new(function.name()).ok()?;
    let adapter = KNOWN_ADAPTERS.lock().get(via)?.module.clone();
    adapter.address_of(&name).map(std::ptr::with_exposed_provenance_mut)
}

/// How a function of adapter `via` may differ from its row. Such a function is left to the adapter.
pub(super) fn former_signature(via: usize, function: Function) -> Option<&'static str> {
    function.former_signature(|getter| {
        let filled = Table::of_getter(getter.as_bytes()).map(|table| registry::query_table(via, table));
        if let Some(filled) = filled.filter(|filled| !filled.is_empty()) {
            return filled.len();
        }
        // Also where the loader has not asked for that table yet.
        let adapter = KNOWN_ADAPTERS.lock().get(via).map(|known| known.module.clone());
        let exported = CString::new(getter).ok().and_then(|getter| adapter?.address_of(&getter));
        // SAFETY: the adapter exports it under the name of the getter.
        exported.map_or(0, |exported| unsafe { registry::length(std::ptr::with_exposed_provenance_mut(exported)) })
    })
}

/// Whether an address is in the code of this library.
fn is_urscope_code(address: usize) -> bool {
    static OWN_CODE: OnceLock<Option<Range<usize>>> = OnceLock::new();
    let own = OWN_CODE.get_or_init(|| modules::code_around(is_urscope_code as *const () as usize));
    own.as_ref().is_some_and(|own| own.contains(&address))
}

/// Replaces functions in a table that the adapter has filled; returns those that were replaced.
///
/// # Safety
///
/// `slots` points at `filled.len()` slots that may be written.
unsafe fn replace_slots(table: Table, via: usize, slots: *mut *mut c_void, filled: &[*mut c_void]) -> Vec<Function> {
    let mut replaced_functions = Vec::new();
    for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == table) {
        // An older adapter has a shorter table. Slots that it does not fill must not be written.
        let place = function.slot_in(filled.len()).and_then(|index| Some((index, filled.get(index).copied()?)));
        let Some((index, original)) = place else {
            // Where its functions are is not known, so commands and what orders them are not seen.
            if function.slot_in(filled.len()).is_none() && function != Function::urEnqueueKernelLaunch {
                synchronization::expose();
            }
            continue;
        };
        if former_signature(via, function).is_some() {
            continue;
        }
        let Some(implementation) = implementation(via, function, original) else { continue };
        // SAFETY: it is the adapter's implementation of this function.
        unsafe { adapter::store(via, function, implementation) };
        // SAFETY: `index` is below `filled.len()`. Other threads may call through the slot: the store is atomic.
        let replaced = unsafe {
            AtomicPtr::from_ptr(slots.add(index)).compare_exchange(
                original,
                hook(function, via),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
        };
        if replaced.is_ok() {
            replaced_functions.push(function);
        }
    }
    replaced_functions
}

/// Replaces the first function of an adapter's `ur_adapter_dditable_t` by [`adapter_get`].
///
/// # Safety
///
/// `slots` points at such a table, which may be written.
unsafe fn replace_adapter_get(via: usize, slots: *mut *mut c_void) {
    if let (Some(original), Some(hook_address)) =
        (ADAPTER_GETS.get(via), adapter::for_adapter!(self::adapter_get_hook, via))
    {
        // SAFETY: the caller's promise.
        unsafe {
            original.store(*slots, Ordering::Release);
            *slots = hook_address;
        }
    }
}

#[unsafe(naked)]
unsafe extern "C" fn adapter_get_hook<const VIA: usize>() {
    naked_asm!("mov ecx, {via}", "jmp {to}", via = const VIA, to = sym adapter_get)
}

/// Takes a call of `urAdapterGet` of adapter `via`.
///
/// # Safety
///
/// As for the real function: `adapters` has room for `count` handles, and `total` is null or valid (`ur_api.h`).
unsafe extern "C" fn adapter_get(count: u32, adapters: *mut usize, total: *mut u32, via: usize) -> ResultCode {
    let real = ADAPTER_GETS.get(via).map_or(null_mut(), |original| original.load(Ordering::Acquire));
    if real.is_null() {
        return ResultCode::UNSUPPORTED_FEATURE;
    }
    // SAFETY: `replace_adapter_get` keeps the adapter's `urAdapterGet`, which has this signature (`ur_api.h`).
    let real = unsafe { std::mem::transmute::<*mut c_void, AdapterGet>(real) };
    // SAFETY: the caller's promise, passed on.
    let result = unsafe { real(count, adapters, total) };
    if result.is_success() && count > 0 && !adapters.is_null() {
        // SAFETY: the adapter has just written a handle there, unless it has no device.
        let handle = unsafe { AdapterHandle::new(*adapters) };
        if let Some(handle) = handle {
            registry::identify(via, handle);
            replace_in_dispatch_table(via, handle);
        }
    }
    result
}

/// The record of an adapter that has not been reported yet. Marks it as reported.
fn take_report(via: usize) -> Option<EntryPoint> {
    let mut adapters = KNOWN_ADAPTERS.lock();
    let known = adapters.get_mut(via).filter(|known| !known.reported)?;
    known.reported = true;
    Some(EntryPoint {
        kind: ADAPTER_TABLE.into(),
        via: via as u64,
        library: known.module.file_name(),
        directory: known.module.directory(),
        runtime: Module::paths_of(&["libsycl.so", "libur_loader.so"]),
        ..EntryPoint::default()
    })
}

/// Reports an adapter whose functions may have other signatures than the rows.
fn report_version(via: usize, version: u32) {
    if let Some(mut entry_point) = take_report(via) {
        entry_point.problem = format!(
            "it uses Unified Runtime {}.{}, but this version of urscope supports only {}.{}",
            version >> 16,
            version & 0xffff,
            VERSION >> 16,
            VERSION & 0xffff,
        );
        report(&entry_point);
    }
}

/// Replaces functions in the adapter's dispatch table, which its first handle points at.
fn replace_in_dispatch_table(via: usize, handle: AdapterHandle) {
    let Some(mut entry_point) = take_report(via) else { return };
    // Only a table in writable data of a library is changed.
    let table = handle.dispatch_table().cast::<*mut c_void>();
    let room = (modules::writable_from(table as usize) / size_of::<*mut c_void>()).min(DISPATCH_TABLE_LIMIT);
    let mut problems = Vec::new();
    if room == 0 {
        problems.push("its dispatch table is not in the writable data of a library".to_owned());
    }
    // An older loader does not ask for tables that were added later, and its adapter lacks them.
    for wanted in Table::ALL.iter().copied().filter(|table| room > 0 && registry::getter(via, *table).is_some()) {
        let filled = registry::query_table(via, wanted);
        if wanted == Table::IPCExp {
            entry_point.ipc_slots = filled.len() as u32;
        }
        // SAFETY: `room` slots from `table` on are writable data of a library that is never unloaded.
        match unsafe { find(table, room, &filled) } {
            Ok(at) => {
                let hooked = Function::ALL.iter().filter(|function| function.slot().0 == wanted);
                let former: BTreeSet<_> = hooked.filter_map(|function| former_signature(via, *function)).collect();
                problems.extend(former.into_iter().map(str::to_owned));
                // SAFETY: `find` found `filled.len()` slots there.
                let replaced = unsafe { replace_slots(wanted, via, table.add(at), &filled) };
                entry_point.functions.extend(replaced.into_iter().map(|function| function.name().to_owned()));
            }
            Err(problem) => problems.push(format!("its {wanted:?} table {problem}")),
        }
    }
    entry_point.slots = entry_point.functions.len() as u32;
    entry_point.problem = problems.join("; ");
    report(&entry_point);
}

/// The unique position of the pointers of `filled` in `room` slots from `table` on.
///
/// # Safety
///
/// `room` slots from `table` on may be read.
unsafe fn find(table: *mut *mut c_void, room: usize, filled: &[*mut c_void]) -> Result<usize, &'static str> {
    if filled.iter().all(|slot| slot.is_null()) {
        return Err("is not provided by this adapter");
    }
    // SAFETY: the caller's promise. Only urscope writes to the table, when the first handle is made.
    let slots = unsafe { std::slice::from_raw_parts(table, room) };
    let mut places = slots.windows(filled.len()).enumerate().filter(|(_, run)| *run == filled).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err("was not found in its dispatch table"),
        (Some(_), Some(_)) => Err("is in its dispatch table more than once"),
    }
}

pub(super) fn report(entry_point: &EntryPoint) {
    let EntryPoint { library, slots, ipc_slots: ipc, problem, .. } = entry_point;
    let is_own = Family::ALL.into_iter().any(|family| family.uses_level_zero(entry_point.via as usize));
    let seen =
        entry_point.functions.iter().filter(|name| Function::from_name(name).is_some_and(Function::is_ipc)).count();
    trace::entry_point(entry_point);
    let path = trace::path().map_or("no trace is written".into(), |path| format!("trace in {}", path.display()));
    let how = if entry_point.kind == INLINE { "in its code" } else { "through its adapter table" };
    let took = format!(
        "{slots} of {} slots",
        Function::ALL.iter().filter(|function| function.interface() == &UNIFIED_RUNTIME).count()
    );
    let of = format!("{seen} of its {ipc} urIPC functions");
    if entry_point.kind == XPTI && problem.is_empty() {
        tracing::info!("watching {library} by XPTI, which shows its calls and cannot refuse them; {path}");
        return;
    }
    if problem.is_empty() && seen > 0 {
        tracing::info!("watching {library} {how}: {took}, {of}; {path}");
    } else if seen > 0 {
        tracing::info!("watching {library} {how}: {took}, {of} ({problem}); {path}");
    } else if problem.is_empty() && is_own {
        tracing::info!(
            "watching {library} {how}: {took}; it has no urIPC functions, \
             so urscope provides its own; {path}"
        );
    } else {
        tracing::warn!(
            "cannot watch {library}: {}; its calls are not recorded, and the verdict will mention that",
            if problem.is_empty() { "it has no urIPC functions" } else { &problem }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers<const N: usize>(addresses: [usize; N]) -> [*mut c_void; N] {
        addresses.map(std::ptr::without_provenance_mut)
    }

    #[test]
    fn a_run_of_pointers_is_found_only_where_it_stands_once() {
        let mut table = pointers([1, 2, 3, 4, 2, 3, 9, 0, 0]);
        let at = table.as_mut_ptr();
        let room = table.len();
        // SAFETY: `room` slots.
        let find = |filled: &[_]| unsafe { find(at, room, filled) };
        assert_eq!(find(&pointers([3, 4])), Ok(2));
        assert!(find(&pointers([2, 3])).is_err(), "twice");
        assert!(find(&pointers([4, 3])).is_err(), "nowhere");
        assert!(find(&pointers([0, 0])).is_err(), "nothing to go by");
        assert!(find(&[]).is_err());
    }

    #[test]
    fn a_shorter_table_is_written_only_as_far_as_it_was_filled() {
        let canary = std::ptr::without_provenance_mut(0xca);
        let mut slots = pointers([0x10, 0x11, 0x12, 0]);
        slots[3] = canary;
        let filled = pointers([0x10, 0x11, 0x12]);
        // SAFETY: three slots and a canary.
        let replaced = unsafe { replace_slots(Table::IPCExp, ADAPTERS - 1, slots.as_mut_ptr(), &filled) };
        assert_eq!(
            replaced,
            [Function::urIPCGetMemHandleExp, Function::urIPCPutMemHandleExp, Function::urIPCOpenMemHandleExp]
        );
        assert_eq!(slots[3], canary);
        assert!(slots[..3].iter().zip(&filled).all(|(now, before)| now != before));
    }

    #[test]
    fn a_slot_that_somebody_else_took_is_left_alone() {
        let somebody = std::ptr::without_provenance_mut(0x99);
        let mut slots = [somebody; 4];
        let filled = pointers([0x10, 0x11, 0x12, 0x13]);
        // SAFETY: four slots.
        let replaced = unsafe { replace_slots(Table::IPCExp, ADAPTERS - 2, slots.as_mut_ptr(), &filled) };
        assert!(replaced.is_empty());
        assert_eq!(slots, [somebody; 4]);
    }

    #[test]
    fn a_function_with_another_signature_is_left_alone() {
        /// `ur_enqueue_exp_dditable_t` of October 2025.
        unsafe extern "C" fn seven_slots(_: u32, into: *mut *mut c_void) -> ResultCode {
            // SAFETY: `query_table` has room for more.
            unsafe { std::slice::from_raw_parts_mut(into, 7) }.fill(null_mut());
            ResultCode::SUCCESS
        }
        let via = ADAPTERS - 3;
        let filled = pointers([0x10, 0x11, 0x12, 0x13]);
        let mut slots = filled;
        // SAFETY: it is a getter.
        assert!(unsafe { registry::store_getter(via, Table::EnqueueExp, seven_slots as *mut c_void) });
        // SAFETY: four slots.
        let replaced = unsafe { replace_slots(Table::IPCExp, via, slots.as_mut_ptr(), &filled) };
        assert_eq!((replaced, slots), (Vec::new(), filled));
        let difference = former_signature(via, Function::urIPCGetMemHandleExp);
        assert!(difference.is_some_and(|difference| difference.contains("urIPCGetMemHandleExp")));
        assert_eq!(former_signature(via, Function::urUSMFree), None);
    }
}
