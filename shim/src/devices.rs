//! Describes each device once per process, so that messages can show its index and name.
//!
//! An adapter is asked after the first successful call with the device, because a handle that it has not accepted may
//! be invalid. It is asked about all devices of the platform, so that they are known in a later call that fails. A
//! forked child inherits the answers and need not ask: a thread that held a lock of the adapter does not exist there.
//! The lock of this module is never held while an adapter is asked, and no adapter is asked in a signal handler.

use std::sync::atomic::{AtomicUsize, Ordering};

use urscope_schema::api::{Effect, role::Device};
use urscope_schema::{handle::Kind, trace::records};

use crate::raw::processes::{fork_reset::ForkReset, process};
use crate::raw::{args::Arg, threads::mutex::RwLock};
use crate::{backend::adapter::device_info, chain};

/// The most devices that are described.
const DEVICE_LIMIT: usize = 256;

static DEVICES: ForkReset<RwLock<Vec<KnownDevice>>> = ForkReset::new(RwLock::default);

/// Devices that need nothing more, each in a slot that follows from its handle; 0 for none. Calls read them without
/// the lock.
static SHOWN_DEVICES: [AtomicUsize; SHOWN_SLOTS] = [const { AtomicUsize::new(0) }; SHOWN_SLOTS];

const SHOWN_SLOTS: usize = 64;

/// The value of a device in [`SHOWN_DEVICES`]. A handle is the address of an object, so its low bits are free for the
/// adapter's number.
fn key(via: usize, device: Arg<Device>) -> usize {
    device.get().0 | via
}

fn shown_slot(key: usize) -> Option<&'static AtomicUsize> {
    SHOWN_DEVICES.get((key >> 4) % SHOWN_SLOTS)
}

#[inline]
fn is_shown(via: usize, device: Arg<Device>) -> bool {
    let key = key(via, device);
    shown_slot(key).is_some_and(|shown_slot| shown_slot.load(Ordering::Relaxed) == key)
}

/// Empties [`SHOWN_DEVICES`].
fn forget_shown() {
    for shown_slot in &SHOWN_DEVICES {
        shown_slot.store(0, Ordering::Relaxed);
    }
}

/// A device that an adapter was asked about.
#[derive(Clone, Debug)]
struct KnownDevice {
    via: usize,
    handle: usize,
    /// The adapter's description, if it gave one.
    description: Option<records::Device>,
    /// Whether the layers of this process have seen it.
    shown: bool,
}

impl KnownDevice {
    fn is(&self, via: usize, device: Arg<Device>) -> bool {
        (self.via, self.handle) == (via, device.get().0)
    }
}

/// Shows a known device of adapter `via` to the layers, before the call with it.
#[expect(clippy::inline_always, reason = "decided when it is compiled: the effect is mostly a constant")]
#[inline(always)]
pub(crate) fn before(effect: Effect, via: usize, device: Option<Arg<Device>>) {
    if let Some(device) = device {
        if !is_shown(via, device) {
            show_known(via, device);
        }
    } else if effect == Effect::Releases(Kind::Adapter) {
        // The last release ends all devices; their addresses may be reused.
        DEVICES.get().write().retain(|known| known.via != via);
        forget_shown();
    }
}

#[cold]
fn show_known(via: usize, device: Arg<Device>) {
    let known = DEVICES.get().read();
    let Some(found) = known.iter().find(|known| known.is(via, device)) else { return };
    if !found.shown {
        drop(known);
        show(via, device);
        return;
    }
    let key = key(via, device);
    if let Some(shown_slot) = shown_slot(key) {
        shown_slot.store(key, Ordering::Relaxed);
    }
}

/// Asks the adapter about an unknown device after a call with it has succeeded.
#[inline]
pub(crate) fn after(via: usize, device: Option<Arg<Device>>) {
    if let Some(device) = device
        && !is_shown(via, device)
        && !is_known(via, device)
    {
        ask(via, device);
    }
}

fn is_known(via: usize, device: Arg<Device>) -> bool {
    let known = DEVICES.get().read();
    known.len() >= DEVICE_LIMIT || known.iter().any(|known| known.is(via, device))
}

#[cold]
fn ask(via: usize, device: Arg<Device>) {
    if process::may_be_in_signal_handler() {
        return;
    }
    let described = device_info::describe(via, device);
    let mut known = DEVICES.get().write();
    for description in described {
        let handle = description.device.0 as usize;
        learn(&mut known, KnownDevice { via, handle, description: Some(description), shown: false });
    }
    learn(&mut known, KnownDevice { via, handle: device.get().0, description: None, shown: true });
    drop(known);
    show(via, device);
}

/// Adds a device, unless another thread has added it meanwhile.
fn learn(known: &mut Vec<KnownDevice>, new: KnownDevice) {
    if known.len() < DEVICE_LIMIT && !known.iter().any(|known| (known.via, known.handle) == (new.via, new.handle)) {
        known.push(new);
    }
}

/// Shows a device to the layers, unless another thread has. The lock makes that thread's calls come later.
#[cold]
fn show(via: usize, device: Arg<Device>) {
    let mut known = DEVICES.get().write();
    let Some(known) = known.iter_mut().find(|known| known.is(via, device) && !known.shown) else { return };
    known.shown = true;
    if let Some(description) = &known.description {
        chain::device(description);
    }
}

/// Replaces the list in a forked child by a copy; its layers have seen no device. If a thread was changing the list,
/// the copy is empty.
pub(crate) fn after_fork_in_child() {
    let mut inherited = DEVICES.get().try_read().map(|known| known.clone()).unwrap_or_default();
    for known in &mut inherited {
        known.shown = false;
    }
    DEVICES.reset(RwLock::new(inherited));
    forget_shown();
}
