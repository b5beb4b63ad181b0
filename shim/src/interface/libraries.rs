//! Libraries of an interface whose functions programs find by dlsym(3), by a function of the library that returns the
//! others, or by linking.
//!
//! A hook calls the very pointer that it stands for. Other libraries may have functions of the same names in front of
//! the driver's (they limit memory, or record calls): each library has hooks of its own, and what one calls in a
//! recorded call is part of that call.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use urscope_schema::api::Function;

use super::{Lookup, driver};
use crate::raw::originals::{self, LIBRARIES};
use crate::raw::{late_functions, symbols::modules::Module, symbols::real_dlsym, threads::mutex::Mutex};

/// The libraries of an interface in this process.
pub(super) struct Libraries {
    /// What the functions of the interface have in common.
    pub(super) is_own: fn(Function) -> bool,
    /// The file name of the driver.
    pub(super) driver: &'static str,
    /// What the trace calls it.
    pub(super) kind: &'static str,
    /// The functions that return others.
    pub(super) getters: &'static [&'static CStr],
    /// The hook of a function for the library with a number.
    pub(super) hook: fn(Function, usize) -> *mut c_void,
    /// Those of the getters, by version.
    pub(super) getter_hook: fn(usize, usize) -> *mut c_void,
    /// Called once for each library, before its first hook.
    pub(super) found: fn(usize, &Module),
    /// The libraries, by number.
    pub(super) modules: Mutex<Vec<Module>>,
    /// The getters, by number.
    pub(super) real_getters: [[AtomicPtr<c_void>; GETTERS]; LIBRARIES],
    /// Which of them are in the trace.
    pub(super) reported: [AtomicBool; LIBRARIES],
}

/// The most libraries with such functions in a process, the driver and those in front of it; and the number from which
/// on they have the twins.
const TWINS: usize = LIBRARIES / 2;

/// The library of a hook with this number.
pub(super) const fn library(via: usize) -> usize {
    via % TWINS
}

/// The most functions of an interface that return others.
pub(super) const GETTERS: usize = 2;

/// A function that is hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// One of [`Libraries::getters`].
    Getter(usize),
    /// A row.
    Row(Function),
    /// The twin of a row ([`Function::twin`]), which is the same function for urscope.
    Twin(Function),
}

impl Libraries {
    fn rows(&self) -> impl Iterator<Item = Function> {
        Function::ALL.iter().copied().filter(|row| (self.is_own)(*row))
    }

    /// The function of this name.
    pub(super) fn symbol(&self, name: &CStr) -> Option<Symbol> {
        self.symbols().find(|symbol| self.bytes(*symbol) == name.to_bytes())
    }

    fn symbols(&self) -> impl Iterator<Item = Symbol> {
        let rows = self.rows().flat_map(|row| [Some(Symbol::Row(row)), row.twin().map(|_| Symbol::Twin(row))]);
        (0..self.getters.len()).map(Symbol::Getter).chain(rows.flatten())
    }

    /// All versions of the function that programs ask a getter for by `name`.
    pub(super) fn versions(&self, name: &CStr) -> impl Iterator<Item = Symbol> {
        self.symbols().filter(|symbol| {
            let version = self.bytes(*symbol).strip_prefix(name.to_bytes());
            version.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"_"))
        })
    }

    fn bytes(&self, symbol: Symbol) -> &'static [u8] {
        match symbol {
            Symbol::Getter(version) => self.getters.get(version).map_or(&[], |name| name.to_bytes()),
            Symbol::Row(function) => function.name().as_bytes(),
            Symbol::Twin(function) => function.twin().unwrap_or_default().as_bytes(),
        }
    }

    /// Its name.
    pub(super) fn name(&self, symbol: Symbol) -> CString {
        CString::new(self.bytes(symbol)).unwrap_or_default()
    }

    /// The result of a lookup of this name, which `real` does.
    pub(super) fn looked_up(&self, name: &CStr, real: &dyn Fn() -> *mut c_void) -> Option<Lookup> {
        let symbol = self.symbol(name)?;
        let real = real();
        if real.is_null() || Module::containing(real as usize).is_none_or(|of| Some(of) != own()) {
            return Some(Lookup::Found(self.hooked(symbol, real)));
        }
        // SAFETY: `RTLD_NEXT` is always allowed.
        let next = unsafe { real_dlsym::real(libc::RTLD_NEXT, name) };
        Some(if next.is_null() { Lookup::Missing } else { Lookup::Found(self.hooked(symbol, next)) })
    }

    /// The hook for a function of a library; the function itself if it is null or urscope's, or if there are too many
    /// libraries.
    fn hooked(&self, symbol: Symbol, real: *mut c_void) -> *mut c_void {
        let Some(via) = self.number(real) else { return real };
        let (place, hook) = match symbol {
            Symbol::Getter(version) => {
                (self.real_getters.get(via).and_then(|getters| getters.get(version)), (self.getter_hook)(version, via))
            }
            Symbol::Row(function) => (originals::slot(via, function), (self.hook)(function, via)),
            Symbol::Twin(function) => (originals::slot(via + TWINS, function), (self.hook)(function, via + TWINS)),
        };
        let Some(place) = place.filter(|_| !hook.is_null()) else { return real };
        place.store(real, Ordering::Release);
        hook
    }

    /// The number of the library of a function; `None` if that is urscope, or if there is no room for another one.
    fn number(&self, function: *mut c_void) -> Option<usize> {
        let module = Module::containing(function as usize)?;
        if module == own()? {
            return None;
        }
        late_functions::find_all();
        let mut modules = self.modules.lock();
        if let Some(via) = modules.iter().position(|known| *known == module) {
            return Some(via);
        }
        if modules.len() == TWINS {
            return None;
        }
        modules.push(module.clone());
        let via = modules.len() - 1;
        drop(modules);
        (self.found)(via, &module);
        Some(via)
    }

    /// What an exported function jumps to: the function that is next after urscope's, or that of a driver that was
    /// opened with RTLD_LOCAL; null if there is none.
    pub(super) fn exported(&self, symbol: Symbol) -> *mut c_void {
        let name = self.name(symbol);
        // SAFETY: `RTLD_NEXT` is always allowed.
        let mut next = unsafe { real_dlsym::real(libc::RTLD_NEXT, &name) };
        if next.is_null() {
            next = real_dlsym::in_library(Path::new(self.driver), &name);
        }
        if next.is_null() { next } else { self.hooked(symbol, next) }
    }

    /// The hook for a function that a getter has returned for `name`. It returns symbols of the library, in the version
    /// that is asked for: so a pointer is the function of a row if that row's symbol has this address, and any other
    /// one is left alone.
    pub(super) fn returned(&self, name: &CStr, real: *mut c_void) -> *mut c_void {
        let mut versions = self.versions(name).peekable();
        if versions.peek().is_some()
            && let Some(module) = Module::containing(real as usize)
            && let Some(symbol) =
                versions.find(|symbol| real_dlsym::in_library(&module.path, &self.name(*symbol)) == real)
        {
            return self.hooked(symbol, real);
        }
        real
    }

    /// A library's own getter, or null.
    pub(super) fn getter(&self, via: usize, version: usize) -> *mut c_void {
        let getter = self.real_getters.get(via).and_then(|getters| getters.get(version));
        getter.map_or(null_mut(), |getter| getter.load(Ordering::Acquire))
    }

    /// Reports the library at its first recorded call, so that it is not in the trace of a process that only computes.
    #[inline]
    pub(super) fn report_once(&self, via: usize) {
        if self.reported.get(via).is_some_and(|reported| !reported.load(Ordering::Relaxed)) {
            self.report(via);
        }
    }

    #[cold]
    fn report(&self, via: usize) {
        let Some(reported) = self.reported.get(via) else { return };
        // This may be a signal handler that interrupted the holder of the lock: the next call reports then.
        let Some(module) = self.modules.try_lock().map(|modules| modules.get(via).cloned()) else { return };
        if reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let is_hooked =
            |row: &Function| [via, via + TWINS].into_iter().any(|via| !originals::original(via, *row).is_null());
        let functions: Vec<_> = self.rows().filter(is_hooked).collect();
        driver::report(self.kind, module.as_ref(), &functions);
    }
}

fn own() -> Option<Module> {
    Module::containing(own as *const () as usize)
}
