//! The main entry point: the tables through which a loader calls an adapter.
//!
//! A loader asks an adapter for its tables by `urGet<Table>ProcAddrTable`. What it does with the answers depends on how
//! many adapters it loads: with one it calls through them, with several it calls through the table that the first word of
//! every handle points at, which is the adapter's own. So both are changed: the answers as they are given, and the
//! adapter's own table once it hands out its first handle (`urAdapterGet`).
//!
//! Releases lay out the adapter's own table differently under one version number. So a slot is found by content: the
//! adapter is asked for a table into memory of ours, and the same pointers are looked for. What is not found exactly once
//! is left alone.

use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering},
};

use parking_lot::Mutex;
use urscope_schema::{
    api::{
        Function, Table, UrResult,
        constants::{UR_ADAPTER_INFO_BACKEND, UR_ADAPTER_INFO_VERSION, UR_BACKEND_LEVEL_ZERO},
    },
    trace::records::EntryPoint,
};

use crate::{
    backend::{Family, adapter},
    call::{ADAPTERS, stand_in},
    layer::trace,
    raw::symbols::modules::{self, Module},
};

/// The one API version whose functions have the signatures of our rows: 0.12, all releases from 2025.2 to 2026.2.
const VERSION: u32 = 12;

/// More slots than any table of ours has in any release.
const SCRATCH: usize = 64;

/// What a slot holds that the adapter did not fill; no address of a function.
const UNFILLED: *mut c_void = std::ptr::without_provenance_mut(0x5a5a_5a5a_5a5a_5a5a);

/// How far into an adapter's own table we look, in slots. The largest known has 241.
const OWN_TABLE: usize = 1024;

type Getter = extern "C" fn(u32, *mut *mut c_void) -> UrResult;
type AdapterGet = extern "C" fn(u32, *mut *mut *mut c_void, *mut u32) -> UrResult;

/// `pfnGetInfo` in `ur_adapter_dditable_t`, and what it says of Level Zero adapters.
const ADAPTER_GET_INFO: usize = 4;

struct Adapter {
    getters: [AtomicPtr<c_void>; Table::ALL.len()],
    get: AtomicPtr<c_void>,
    /// What the first word of its handles points at.
    own_table: AtomicPtr<c_void>,
    level_zero: AtomicBool,
    version: AtomicU32,
}

static KNOWN: [Adapter; ADAPTERS] = [const {
    Adapter {
        getters: [const { AtomicPtr::new(null_mut()) }; Table::ALL.len()],
        get: AtomicPtr::new(null_mut()),
        own_table: AtomicPtr::new(null_mut()),
        level_zero: AtomicBool::new(false),
        version: AtomicU32::new(0),
    }
}; ADAPTERS];

/// The libraries behind the numbers, and whether it has been said what came of each.
static MODULES: Mutex<Vec<(Module, bool)>> = Mutex::new(Vec::new());

/// What a loader gets that asked an adapter for `table`, when the adapter answered with its getter `real`.
pub fn getter(table: Table, real: *mut c_void) -> *mut c_void {
    match number(real) {
        Some(via) => match (KNOWN.get(via).and_then(|known| known.getters.get(table as usize)), our_getter(table, via))
        {
            (Some(kept), Some(ours)) => {
                kept.store(real, Ordering::Release);
                ours as *mut c_void
            }
            _ => real,
        },
        None => real,
    }
}

/// The number of the adapter whose getter that is; nothing if it is no adapter, or one too many.
fn number(getter: *mut c_void) -> Option<usize> {
    let module = Module::of(getter as usize)?;
    let mut modules = MODULES.lock();
    if let Some(via) = modules.iter().position(|(known, _)| *known == module) {
        return Some(via);
    }
    // A loader exports getters of the same names, for its own clients. Behind it stand adapters: theirs count.
    if module.exports(c"urLoaderInit") || modules.len() == ADAPTERS {
        return None;
    }
    modules.push((module, false));
    Some(modules.len() - 1)
}

extern "C" fn get_table<const TABLE: usize, const VIA: usize>(version: u32, into: *mut *mut c_void) -> UrResult {
    let Some((table, real)) = Table::ALL.get(TABLE).and_then(|table| Some((*table, real_getter(*table, VIA)?))) else {
        return UrResult::UNSUPPORTED_FEATURE;
    };
    let result = real(version, into);
    if !result.is_success() || into.is_null() {
        return result;
    }
    if version != VERSION {
        unknown_version(VIA, version);
        return result;
    }
    let filled = query_table(table, VIA);
    // SAFETY: the adapter has just filled `filled.len()` slots of the caller's table, and none more is touched.
    unsafe { replace_slots(table, VIA, into, &filled) };
    if table == Table::Adapter {
        // SAFETY: as above; the first slot of this table is `pfnGet` (`ur_ddi.h`).
        unsafe { replace_adapter_get(VIA, into) };
    }
    result
}

fn our_getter(table: Table, via: usize) -> Option<Getter> {
    macro_rules! row {
        ($t:literal: $($v:literal)*) => { [$(get_table::<$t, $v>,)*] };
    }
    static OURS: [[Getter; ADAPTERS]; Table::ALL.len()] = [
        row!(0: 0 1 2 3 4 5 6 7),
        row!(1: 0 1 2 3 4 5 6 7),
        row!(2: 0 1 2 3 4 5 6 7),
        row!(3: 0 1 2 3 4 5 6 7),
        row!(4: 0 1 2 3 4 5 6 7),
        row!(5: 0 1 2 3 4 5 6 7),
        row!(6: 0 1 2 3 4 5 6 7),
        row!(7: 0 1 2 3 4 5 6 7),
        row!(8: 0 1 2 3 4 5 6 7),
        row!(9: 0 1 2 3 4 5 6 7),
    ];
    OURS.get(table as usize)?.get(via).copied()
}

fn real_getter(table: Table, via: usize) -> Option<Getter> {
    let real = KNOWN.get(via)?.getters.get(table as usize)?.load(Ordering::Acquire);
    if real.is_null() {
        return None;
    }
    // SAFETY: `getter` keeps only what the adapter exports under the getter's name, which has this signature (`ur_ddi.h`).
    Some(unsafe { std::mem::transmute::<*mut c_void, Getter>(real) })
}

/// The pointers with which the adapter fills a table, as many as it fills.
fn query_table(table: Table, via: usize) -> Vec<*mut c_void> {
    let mut scratch = [UNFILLED; SCRATCH];
    let asked = real_getter(table, via).map(|getter| getter(VERSION, scratch.as_mut_ptr()));
    if asked.is_some_and(UrResult::is_success) {
        scratch.into_iter().take_while(|slot| *slot != UNFILLED).collect()
    } else {
        Vec::new()
    }
}

/// Puts our functions into a table that the adapter has filled; says which.
///
/// # Safety
///
/// `slots` points at `filled.len()` slots that may be written.
unsafe fn replace_slots(table: Table, via: usize, slots: *mut *mut c_void, filled: &[*mut c_void]) -> Vec<Function> {
    let mut taken = Vec::new();
    for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == table) {
        // An older adapter's table is shorter: what it does not fill is not ours to write.
        let place = function.slot_in(filled.len()).and_then(|index| Some((index, filled.get(index).copied()?)));
        let (Some((index, original)), Some(ours)) = (place, stand_in(function, via)) else { continue };
        if original.is_null() {
            continue;
        }
        adapter::keep(via, function, original);
        // SAFETY: `index` is below `filled.len()`. Other threads may call through the slot: a pointer is stored whole.
        let replaced = unsafe {
            AtomicPtr::from_ptr(slots.add(index)).compare_exchange(original, ours, Ordering::AcqRel, Ordering::Acquire)
        };
        if replaced.is_ok() {
            taken.push(function);
        }
    }
    taken
}

/// Puts [`adapter_get`] into the first slot of an adapter's `ur_adapter_dditable_t`.
///
/// # Safety
///
/// `slots` points at such a table, which may be written.
unsafe fn replace_adapter_get(via: usize, slots: *mut *mut c_void) {
    macro_rules! row {
        ($($v:literal)*) => { [$(adapter_get::<$v>,)*] };
    }
    static OURS: [AdapterGet; ADAPTERS] = row!(0 1 2 3 4 5 6 7);
    if let (Some(known), Some(ours)) = (KNOWN.get(via), OURS.get(via)) {
        // SAFETY: the caller's promise.
        unsafe {
            known.get.store(*slots, Ordering::Release);
            *slots = *ours as *mut c_void;
        }
    }
}

extern "C" fn adapter_get<const VIA: usize>(count: u32, adapters: *mut *mut *mut c_void, total: *mut u32) -> UrResult {
    let real = KNOWN.get(VIA).map_or(null_mut(), |known| known.get.load(Ordering::Acquire));
    if real.is_null() {
        return UrResult::UNSUPPORTED_FEATURE;
    }
    // SAFETY: `replace_adapter_get` keeps the adapter's `urAdapterGet`, which has this signature (`ur_api.h`).
    let real = unsafe { std::mem::transmute::<*mut c_void, AdapterGet>(real) };
    let result = real(count, adapters, total);
    if result.is_success() && count > 0 && !adapters.is_null() {
        // SAFETY: the adapter has just put at least one handle there, or none at all if it has no device.
        let handle = unsafe { *adapters };
        if !handle.is_null() {
            identify(VIA, handle);
            first_handle(VIA, handle);
        }
    }
    result
}

/// Remembers what tells the adapter's handles from others', and what is behind it.
fn identify(via: usize, handle: *mut *mut c_void) {
    type GetInfo = extern "C" fn(*mut *mut c_void, u32, usize, *mut u32, *mut usize) -> UrResult;

    let Some(known) = KNOWN.get(via).filter(|known| known.own_table.load(Ordering::Acquire).is_null()) else { return };
    if let Some(get_info) = function(via, Table::Adapter, ADAPTER_GET_INFO) {
        // SAFETY: this slot holds the adapter's `urAdapterGetInfo`, which has this signature (`ur_api.h`).
        let get_info = unsafe { std::mem::transmute::<*mut c_void, GetInfo>(get_info) };
        let ask = |property| {
            let mut answer = 0;
            let result = get_info(handle, property, size_of::<u32>(), &raw mut answer, null_mut());
            result.is_success().then_some(answer)
        };
        known.version.store(ask(UR_ADAPTER_INFO_VERSION).unwrap_or(0), Ordering::Release);
        known.level_zero.store(ask(UR_ADAPTER_INFO_BACKEND) == Some(UR_BACKEND_LEVEL_ZERO), Ordering::Release);
    }
    // SAFETY: the first word of every handle of an adapter is a pointer (since 2025.2); it is only compared.
    known.own_table.store(unsafe { *handle }, Ordering::Release);
}

/// Whether that is an adapter for Level Zero devices.
#[inline]
pub fn is_level_zero(via: usize) -> bool {
    KNOWN.get(via).is_some_and(|known| known.level_zero.load(Ordering::Acquire))
}

/// Which generation of its kind the adapter is (`UR_UR_ADAPTER_INFO_VERSION`): 1 or 2; 0 where it does not say.
pub fn version(via: usize) -> u32 {
    KNOWN.get(via).map_or(0, |known| known.version.load(Ordering::Acquire))
}

/// The number of the adapter that a handle is one of.
///
/// `handle` must be null or a handle that an adapter made.
pub fn adapter_of(handle: usize) -> Option<usize> {
    if handle == 0 {
        return None;
    }
    // SAFETY: the first word of every handle of an adapter is a pointer (since 2025.2); it is only compared.
    let table = unsafe { *std::ptr::with_exposed_provenance::<*mut c_void>(handle) };
    KNOWN.iter().position(|known| !table.is_null() && known.own_table.load(Ordering::Acquire) == table)
}

/// A function that the adapter has in that slot, also one that we do not stand in front of.
pub fn function(via: usize, table: Table, slot: usize) -> Option<*mut c_void> {
    query_table(table, via).get(slot).copied().filter(|function| !function.is_null())
}

/// An adapter that nothing has been said of yet, from then on no more.
fn unreported(via: usize) -> Option<EntryPoint> {
    let mut modules = MODULES.lock();
    let (module, said) = modules.get_mut(via).filter(|(_, said)| !said)?;
    *said = true;
    Some(EntryPoint {
        kind: "adapter-table".into(),
        via: via as u64,
        library: module.file_name(),
        directory: module.directory(),
        runtime: Module::paths_of(&["libsycl.so", "libur_loader.so"]),
        ..EntryPoint::default()
    })
}

/// An adapter whose functions may have other signatures than ours.
fn unknown_version(via: usize, version: u32) {
    if let Some(mut entry_point) = unreported(via) {
        entry_point.problem = format!(
            "it speaks Unified Runtime {}.{}, and this urscope knows {}.{} only",
            version >> 16,
            version & 0xffff,
            VERSION >> 16,
            VERSION & 0xffff,
        );
        report(entry_point);
    }
}

/// Deals with the adapter's own table, the first time that a handle shows where it is.
fn first_handle(via: usize, handle: *mut *mut c_void) {
    let Some(mut entry_point) = unreported(via) else { return };
    // SAFETY: the first word of every handle of an adapter points at its own table (since 2025.2); it is only followed
    // where it leads into writable data of a library.
    let table = unsafe { *handle }.cast::<*mut c_void>();
    let room = (modules::writable_from(table as usize) / size_of::<*mut c_void>()).min(OWN_TABLE);
    let mut problems = Vec::new();
    if room == 0 {
        problems.push("its dispatch table is not in writable memory of a library".to_owned());
    }
    // A loader of an older release does not ask for the tables that came later: then the adapter has none.
    for wanted in Table::ALL.into_iter().filter(|table| room > 0 && real_getter(*table, via).is_some()) {
        let filled = query_table(wanted, via);
        if wanted == Table::IPCExp {
            entry_point.ipc_slots = filled.len() as u32;
        }
        // SAFETY: `room` slots from `table` on are writable data of a library that is never unloaded.
        match unsafe { find(table, room, &filled) } {
            Ok(at) => {
                // SAFETY: `find` found `filled.len()` slots there.
                let replaced = unsafe { replace_slots(wanted, via, table.add(at), &filled) };
                entry_point.functions.extend(replaced.into_iter().map(|function| function.name().to_owned()));
            }
            Err(problem) => problems.push(format!("its {wanted:?} table {problem}")),
        }
    }
    entry_point.slots = entry_point.functions.len() as u32;
    entry_point.problem = problems.join("; ");
    report(entry_point);
}

/// The one place in `room` slots from `table` on where the pointers of `filled` stand.
///
/// # Safety
///
/// `room` slots from `table` on may be read.
unsafe fn find(table: *mut *mut c_void, room: usize, filled: &[*mut c_void]) -> Result<usize, &'static str> {
    if filled.iter().all(|slot| slot.is_null()) {
        return Err("is not offered by this adapter");
    }
    // SAFETY: the caller's promise. Nobody writes to the table but us, under the lock of `first_handle`'s first time.
    let slots = unsafe { std::slice::from_raw_parts(table, room) };
    let mut places = slots.windows(filled.len()).enumerate().filter(|(_, run)| *run == filled).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok(at),
        (None, _) => Err("is not where this urscope can find it"),
        (Some(_), Some(_)) => Err("stands in more than one place"),
    }
}

fn report(entry_point: EntryPoint) {
    let (library, slots, ipc) = (entry_point.library.clone(), entry_point.slots, entry_point.ipc_slots);
    let problem = entry_point.problem.clone();
    let ours = Family::ALL.into_iter().any(|family| family.is_ours(entry_point.via as usize));
    let seen =
        entry_point.functions.iter().filter(|name| Function::from_name(name).is_some_and(Function::is_ipc)).count();
    trace::entry_point(entry_point);
    let path = trace::path().map_or("no trace is written".into(), |path| format!("trace in {}", path.display()));
    let (took, of) =
        (format!("{slots} of {} slots", Function::COUNT), format!("{seen} of its {ipc} urIPC entry points"));
    if problem.is_empty() && seen > 0 {
        tracing::info!("watching {library} through its adapter table: {took}, {of}; {path}");
    } else if seen > 0 {
        tracing::info!("watching {library} through its adapter table: {took}, {of} ({problem}); {path}");
    } else if problem.is_empty() && ours {
        tracing::info!(
            "watching {library} through its adapter table: {took}; it has no urIPC entry points, \
             those that urscope exports are served by its own backend; {path}"
        );
    } else {
        tracing::warn!(
            "cannot watch {library}: {}; its calls go on unseen, and the verdict will say so",
            if problem.is_empty() { "it has no urIPC entry points" } else { &problem }
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
        let (at, room) = (table.as_mut_ptr(), table.len());
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
    fn the_order_of_tables_is_the_one_of_their_numbers() {
        for (number, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, number);
        }
    }
}
