//! The entry point for adapters without accessible tables: Frida's Gum changes the code of their functions.
//!
//! Such an adapter is linked into a program or into libsycl: its functions are found by the symbols of the file, also
//! local ones, or of its debug file. If urscope is loaded into a running process, the loader already has the tables:
//! the adapters' getters give the functions. An adapter whose tables are asked for later belongs to [`super::ddi`],
//! and a loader's functions, which have the same names, are not changed: no call may be recorded twice.
//!
//! `Interceptor::replace_fast` writes a jump to the hook, which keeps the caller's stack and lets exceptions pass. It
//! needs 16 bytes of code. `Interceptor::replace` needs 5, but stops exceptions and hides the stack: it is used for
//! shorter functions whose code ([`code`]) calls nothing. The trace names the functions that are not changed.

mod calls;
mod code;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::{collections::BTreeMap, ffi::CString, path::Path, ptr::null_mut};

use frida_gum::{Error, Gum, NativePointer, interceptor::Interceptor};
use urscope_schema::api::{Function, Table, UNIFIED_RUNTIME};
use urscope_schema::trace::records::{self, EntryPoint, INLINE};

use super::ddi::{self, Interception};
use crate::backend::adapter::{self, ADAPTERS, registry};
use crate::raw::symbols::modules::{self, Module};
use crate::raw::threads::{mutex::Mutex, thread};
use crate::raw::{signals::interruptions, symbols::elf};

/// The functions of an adapter, with their addresses.
type Functions = BTreeMap<Function, usize>;

/// A symbol of Unified Runtime's loader, also if it is linked into another library.
const LOADER: &str = "urLoaderInit";

/// The addresses of a library that contains only the adapter: calls from there are the adapter's own.
static OWN_CODE: [(AtomicUsize, AtomicUsize); ADAPTERS] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; ADAPTERS];

/// The addresses of the searched libraries. It is locked during a search.
static SEARCHED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The number of libraries that had been loaded at the last search.
static LOADS: AtomicU64 = AtomicU64::new(0);

/// Whether [`start`] has run. Before that, nothing is searched.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The thread that searches; 0 for none. Its lookups are urscope's.
static SEARCHER: AtomicU32 = AtomicU32::new(0);

/// Searches the libraries of the process. Called once, when this library is loaded.
pub fn start() {
    IS_ON.store(true, Ordering::Release);
    search(modules::came_late());
}

/// Searches libraries that were loaded since. Called for every lookup of a name; false for lookups by urscope.
pub(crate) fn notice() -> bool {
    if SEARCHER.load(Ordering::Relaxed) == thread::id() {
        return false;
    }
    if IS_ON.load(Ordering::Acquire) && LOADS.load(Ordering::Acquire) != modules::loads() {
        search(false);
    }
    true
}

/// Searches new libraries. `by_tables`: also for adapters whose tables a loader may already have.
fn search(by_tables: bool) {
    // Waiting could deadlock with a thread that holds the dynamic loader's lock; the next lookup searches again.
    let Some(mut searched) = SEARCHED.try_lock() else { return };
    let _held_off = interruptions::hold_off();
    SEARCHER.store(thread::id(), Ordering::Relaxed);
    LOADS.store(modules::loads(), Ordering::Release);
    let ours = Module::containing(start as *const () as usize);
    for described in modules::all() {
        if searched.contains(&described.start.0) {
            continue;
        }
        searched.push(described.start.0);
        let Some(module) = Module::containing(described.start.0 as usize) else { continue };
        if ours.as_ref().is_some_and(|ours| ours.base == module.base) {
            continue;
        }
        let is_loader = exports(&described, LOADER);
        if !is_loader && exports(&described, Table::Adapter.getter()) {
            if by_tables && !ddi::is_known(&module) {
                from_tables(&module, &described);
            }
            continue;
        }
        for (namespace, functions) in named(&described, is_loader) {
            from_symbols(&module, &namespace, &functions);
        }
    }
    SEARCHER.store(0, Ordering::Relaxed);
}

fn exports(module: &records::Module, name: &str) -> bool {
    CString::new(name).is_ok_and(|name| modules::symbol_of(module.start.0 as usize, &name).is_some())
}

/// The adapters in a program or library, by the namespaces of their symbols. An adapter that supports no sharing,
/// such as the OpenCL adapter in libsycl, is skipped.
fn named(module: &records::Module, exports_loader: bool) -> BTreeMap<String, Functions> {
    let mut found = BTreeMap::<String, Functions>::new();
    let mut has_loader = exports_loader;
    elf::functions(Path::new(&module.path), |name, place| {
        let Ok(name) = std::str::from_utf8(name) else { return };
        has_loader |= name == LOADER;
        let address = module.bias.0.wrapping_add(place) as usize;
        if let Some((namespace, function)) = of_adapter(name).filter(|_| !code::only_returns(address)) {
            found.entry(namespace).or_default().entry(function).or_insert(address);
        }
    });
    if has_loader {
        found.remove("");
    }
    found.retain(|_, functions| functions.keys().any(|function| function.is_ipc()));
    found
}

/// The namespace and the function of a symbol: a C function, or a C++ function in a namespace such as
/// `ur::level_zero`, which linked adapters have. Layers of the loader have other namespaces.
fn of_adapter(symbol: &str) -> Option<(String, Function)> {
    let of_runtime = |name: &str| Function::from_name(name).filter(|function| function.interface() == &UNIFIED_RUNTIME);
    let Some(mut nested) = symbol.strip_prefix("_ZN") else {
        return of_runtime(symbol).map(|function| (String::new(), function));
    };
    // Parts of functions that the compiler splits off have a suffix.
    if symbol.contains('.') {
        return None;
    }
    let mut parts = Vec::new();
    while !nested.starts_with('E') {
        let digits = nested.find(|letter: char| !letter.is_ascii_digit())?;
        let (length, rest) = nested.split_at_checked(digits)?;
        let (part, rest) = rest.split_at_checked(length.parse().ok()?)?;
        parts.push(part);
        nested = rest;
    }
    let function = of_runtime(parts.pop()?)?;
    (parts.first() == Some(&"ur")).then(|| (parts.join("::"), function))
}

/// Hooks an adapter that is linked into a program or library.
fn from_symbols(module: &Module, namespace: &str, functions: &Functions) {
    let Some(via) = ddi::add_adapter(Interception::Code, module.clone()) else { return };
    let ipc = functions.keys().filter(|function| function.is_ipc()).count();
    change(via, module, namespace, functions, ipc);
}

/// Hooks an adapter whose tables the loader may already have.
fn from_tables(module: &Module, described: &records::Module) {
    let Some(via) = ddi::add_adapter(Interception::Code, module.clone()) else { return };
    if let Some((begin, end)) = OWN_CODE.get(via) {
        end.store(described.end.0 as usize, Ordering::Release);
        begin.store(described.start.0 as usize, Ordering::Release);
    }
    let mut functions = Functions::new();
    let mut ipc = 0;
    for table in Table::ALL.iter().copied().filter(|table| table.interface() == &UNIFIED_RUNTIME) {
        let getter = CString::new(table.getter()).ok().and_then(|getter| module.address_of(&getter));
        let Some(getter) = getter else { continue };
        // SAFETY: the adapter exports it under the name of the getter.
        unsafe { registry::store_getter(via, table, std::ptr::with_exposed_provenance_mut(getter)) };
        let filled = registry::query_table(via, table);
        if table == Table::IPCExp {
            ipc = filled.len();
        }
        for function in Function::ALL.iter().copied().filter(|function| function.slot().0 == table) {
            let slot = function.slot_in(filled.len()).and_then(|slot| filled.get(slot).copied());
            let slot = slot.filter(|_| ddi::former_signature(via, function).is_none());
            if let Some(slot) = slot.filter(|slot| !slot.is_null() && !code::only_returns(*slot as usize)) {
                functions.insert(function, slot as usize);
            }
        }
    }
    change(via, module, "", &functions, ipc);
}

/// Changes the functions of adapter `via` to jump to the hooks, and reports that.
fn change(via: usize, module: &Module, namespace: &str, functions: &Functions, ipc: usize) {
    let gum = Gum::obtain();
    let mut interceptor = Interceptor::obtain(&gum);
    let mut changed = Vec::new();
    let mut short = Vec::new();
    let mut same = Vec::new();
    interceptor.begin_transaction();
    for (function, address) in functions {
        let Some(ours) = calls::hook(*function, via).map(NativePointer) else { continue };
        let place = NativePointer(std::ptr::with_exposed_provenance_mut(*address));
        let original = match interceptor.replace_fast(place, ours) {
            Err(Error::InterceptorBadSignature) if code::calls_nothing(*address) => {
                interceptor.replace(place, ours, NativePointer(null_mut()))
            }
            done => done,
        };
        match original {
            Ok(NativePointer(original)) => {
                // SAFETY: it executes the first instructions of the adapter's function and continues after them.
                unsafe { adapter::store(via, *function, original) };
                changed.push(function.name().to_owned());
            }
            // It begins with a jump to a changed function, and is recorded as that.
            Err(Error::InterceptorAlreadyReplaced) => same.push(function.name()),
            Err(_) => short.push(function.name()),
        }
    }
    interceptor.end_transaction();
    // The changes stay until the process ends.
    std::mem::forget(interceptor);
    let problems =
        [(short, "cannot be changed"), (same, "is also that of another function, as which its calls are recorded")];
    let problems = problems.iter().filter(|(functions, _)| !functions.is_empty());
    let problem: Vec<_> =
        problems.map(|(functions, what)| format!("the code of {} {what}", functions.join(", "))).collect();
    let name = module.file_name();
    ddi::report(&EntryPoint {
        kind: INLINE.into(),
        via: via as u64,
        library: if namespace.is_empty() { name } else { format!("{name} ({namespace})") },
        directory: module.directory(),
        runtime: Module::paths_of(&["libsycl.so", "libur_loader.so"]),
        slots: changed.len() as u32,
        ipc_slots: ipc as u32,
        functions: changed,
        problem: problem.join("; "),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_adapters_are_known_by_their_symbols() {
        let get = Function::urIPCGetMemHandleExp;
        let found = |symbol| of_adapter(symbol).map(|(namespace, function)| (namespace.as_str().to_owned(), function));
        assert_eq!(found("urIPCGetMemHandleExp"), Some((String::new(), get)));
        assert_eq!(
            found("_ZN2ur10level_zero20urIPCGetMemHandleExpEP20ur_context_handle_t_PvPS3_Pm"),
            Some(("ur::level_zero".into(), get))
        );
        for other in [
            "_ZN9ur_loader20urIPCGetMemHandleExpEP20ur_context_handle_t_PvPS3_Pm",
            "_ZN2ur10level_zero20urIPCGetMemHandleExpEP20ur_context_handle_t_PvPS3_Pm.cold",
            "_ZN2ur10level_zero8urOthersEv",
            "_ZN2ur99urIPCGetMemHandleExpE",
            "_ZNK2ur3xyzE",
            "zeMemGetIpcHandle",
            "urIPCGetMemHandleExp.part.0",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
