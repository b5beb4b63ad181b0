//! Asks the software device which memory its unfinished commands access, and when it has executed them. Other devices
//! cannot be asked.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use urscope_device_interface as device;
use urscope_device_interface::{Interface, VERSION};
use urscope_schema::call::{Access, Executed, Nanos, Rows};

use super::symbols::modules::Module;
use super::threads::thread;

/// A symbol of the software device, which is a driver and also the loader for programs.
pub use urscope_device_interface::SYMBOL;

/// Those of the devices of this process: the library for Level Zero is one, and that for CUDA is another one.
static INTERFACES: [AtomicPtr<Interface>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

/// Registers a library, if it is the software device. One of another version is not asked, and a message says so.
pub fn found(library: &Module) {
    let Some(address) = library.address_of(SYMBOL) else { return };
    // SAFETY: the symbol is that of an `Interface`, of any version; all begin with these two numbers.
    let [size, version] = unsafe { std::ptr::with_exposed_provenance::<[u32; 2]>(address).read() };
    if Interface::is_usable(size, version) {
        let found = std::ptr::with_exposed_provenance_mut(address);
        let store =
            |slot: &AtomicPtr<_>| slot.compare_exchange(null_mut(), found, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if INTERFACES.iter().any(store) && !OBSERVER.load(Ordering::Acquire).is_null() {
            observe();
        }
    } else {
        tracing::warn!(
            "the software device {} has version {version} of its interface for tools ({size} bytes), and this \
             urscope needs version {VERSION} ({} bytes): races and accesses by unfinished commands are not found; use \
             the device of this urscope",
            library.path.display(),
            size_of::<Interface>(),
        );
    }
}

/// Those that can be asked.
fn interfaces() -> impl Iterator<Item = &'static Interface> {
    // SAFETY: only `found` stores there, what it has checked; the device is never unloaded.
    INTERFACES.iter().map_while(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// Receives each access of an executed command to shared memory, on the thread of the device that has executed it.
pub trait CommandObserver: Sync {
    /// The command has ended.
    fn executed(&self, executed: &Executed);
}

static OBSERVER: AtomicPtr<&'static dyn CommandObserver> = AtomicPtr::new(null_mut());

/// Lets the device tell of the commands that recorded calls enqueue from now on.
pub fn observe_commands(observer: &'static &'static dyn CommandObserver) {
    OBSERVER.store(std::ptr::from_ref(observer).cast_mut(), Ordering::Release);
    observe();
}

fn observe() {
    for interface in interfaces() {
        (interface.observe_commands)(current_call, executed);
    }
}

extern "C" fn current_call() -> u64 {
    thread::command()
}

extern "C" fn executed(told: &device::Access) {
    // SAFETY: only `observe_commands` stores there, a reference that lives for ever.
    let Some(observer) = (unsafe { OBSERVER.load(Ordering::Acquire).as_ref() }) else { return };
    let device::Access { call, begin, end, memory, offset, length, pitch, rows, access } = *told;
    let Some(access) = usize::try_from(access).ok().and_then(|kind| Access::ALL.get(kind)).copied() else { return };
    let rows = Rows { offset, length, pitch, count: rows };
    let begin = Nanos(begin);
    let end = Nanos(end);
    observer.executed(&Executed { call, tid: thread::id(), begin, end, memory, rows, access });
}

/// The offset from an address of the first byte that an unfinished command of this process accesses, `None` if all have
/// completed; `None` with another device, which cannot be asked.
pub fn unfinished_from(address: u64) -> Option<Option<u64>> {
    let distance = interfaces().map(|interface| (interface.unfinished_from)(address as usize)).min()?;
    Some(Some(distance).filter(|distance| *distance != usize::MAX).map(|distance| distance as u64))
}
