//! Asks the software device which memory its unfinished commands access, and when it has executed them. Other devices
//! cannot be asked.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use urscope_schema::call::{Access, Executed, Nanos, Rows};

use super::symbols::modules::Module;
use super::threads::thread;

/// A symbol of the software device, which is a driver and also the loader for programs.
pub const MARK: &CStr = c"zeSoftDriver";

const UNFINISHED_FROM: &CStr = c"zeSoftUnfinishedFrom";

const OBSERVE_COMMANDS: &CStr = c"zeSoftObserveCommands";

static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static OBSERVE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Registers a library as the software device.
pub fn found(library: &Module) {
    for (name, function) in [(UNFINISHED_FROM, &FUNCTION), (OBSERVE_COMMANDS, &OBSERVE)] {
        if let Some(address) = library.address_of(name) {
            function.store(std::ptr::with_exposed_provenance_mut(address), Ordering::Release);
        }
    }
}

/// An access of an executed command, as the device describes it.
#[repr(C)]
struct Told {
    call: u64,
    begin: u64,
    end: u64,
    memory: u64,
    offset: u64,
    length: u64,
    pitch: u64,
    rows: u64,
    /// The place of its kind in [`Access::ALL`].
    access: u64,
}

/// Receives each access of an executed command to shared memory, on the thread of the device that has executed it.
pub trait CommandObserver: Sync {
    /// The command has ended.
    fn executed(&self, executed: &Executed);
}

/// The signature of the device's function.
type Observe = extern "C" fn(extern "C" fn() -> u64, extern "C" fn(&Told));

static OBSERVER: AtomicPtr<&'static dyn CommandObserver> = AtomicPtr::new(null_mut());

/// Lets the device tell of the commands that recorded calls enqueue from now on.
pub fn observe_commands(observer: &'static &'static dyn CommandObserver) {
    let function = OBSERVE.load(Ordering::Acquire);
    if function.is_null() {
        return;
    }
    OBSERVER.store(std::ptr::from_ref(observer).cast_mut(), Ordering::Release);
    // SAFETY: as in `unfinished_from`.
    let observe = unsafe { std::mem::transmute::<*mut c_void, Observe>(function) };
    observe(current_call, executed);
}

extern "C" fn current_call() -> u64 {
    thread::command()
}

extern "C" fn executed(told: &Told) {
    // SAFETY: only `observe_commands` stores there, a reference that lives for ever.
    let Some(observer) = (unsafe { OBSERVER.load(Ordering::Acquire).as_ref() }) else { return };
    let Told { call, begin, end, memory, offset, length, pitch, rows, access } = *told;
    let Some(access) = usize::try_from(access).ok().and_then(|kind| Access::ALL.get(kind)).copied() else { return };
    let rows = Rows { offset, length, pitch, count: rows };
    let (begin, end) = (Nanos(begin), Nanos(end));
    observer.executed(&Executed { call, tid: thread::id(), begin, end, memory, rows, access });
}

/// The offset from an address of the first byte that an unfinished command of this process accesses, `None` if all have
/// completed; `None` with another device, which cannot be asked.
pub fn unfinished_from(address: u64) -> Option<Option<u64>> {
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return None;
    }
    // SAFETY: `found` found it under this name in the software device, whose README has this signature. It does not
    // read the caller's memory.
    let ask = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> usize>(function) };
    Some(Some(ask(address as usize)).filter(|distance| *distance != usize::MAX).map(|distance| distance as u64))
}
