//! Faults of kernels: a kernel that accesses unmapped memory loses the devices, as a fault on a GPU does.
//!
//! Kernels run in threads of the engine and of streams, which block all other signals. So the handler can tell them
//! from threads of the application, whose faults go to the previous handler. A thread that has faulted stops forever,
//! because the engine cannot continue without it. Another thread then reports the fault in one line, and from then on
//! the devices of this process are lost. Must never take a lock in the handler.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::{mem, ptr};

use parking_lot::Mutex;

use crate::platform::threads::{self, FAULTS};
use crate::platform::{futex, log, process};

/// Signals that every thread of the engine and of streams has blocked.
const BLOCKED: [c_int; 6] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCHLD];

/// The previous handlers of [`FAULTS`].
static PREVIOUS_HANDLERS: OnceLock<[libc::sigaction; FAULTS.len()]> = OnceLock::new();
/// The kernels that run now, and their number.
static RUNNING: Mutex<Vec<Arc<str>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The first fault: its signal, its address, and the word that the watching thread waits on.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static FAULTED: AtomicU32 = AtomicU32::new(0);
/// Called when the devices are lost, to end the waits for work that will never complete.
static WHEN_LOST: OnceLock<fn()> = OnceLock::new();

/// A kernel that runs, until it is dropped.
pub(crate) struct Running(Arc<str>);

impl Running {
    /// A kernel of this name runs now.
    pub(crate) fn new(name: &Arc<str>) -> Self {
        COUNT.fetch_add(1, Ordering::AcqRel);
        RUNNING.lock().push(Arc::clone(name));
        Self(Arc::clone(name))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = RUNNING.lock();
        if let Some(at) = running.iter().position(|name| Arc::ptr_eq(name, &self.0)) {
            running.swap_remove(at);
        }
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether a kernel runs. In a forked child: whether one ran in the parent at the fork.
pub(super) fn is_running() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Sets the function that is called once the devices of this process are lost.
pub(crate) fn when_lost(call: fn()) {
    // The second caller sets the same.
    let _ = WHEN_LOST.set(call);
}

/// The devices of this process are lost, for this reason.
pub(crate) fn lose(reason: &str) {
    if process::devices_are_lost() {
        return;
    }
    log::warn(&format!("{reason}: the device is lost"));
    process::lose_devices();
    if let Some(call) = WHEN_LOST.get() {
        call();
    }
}

/// Installs the handlers, once.
pub(super) fn watch() {
    if threads::spawn(report).is_err() {
        // Without the reporting thread, a fault ends the process.
        return;
    }
    let before = FAULTS.map(|signal| {
        // SAFETY: an all-zero sigaction is a valid value, with an empty mask; the handler has the signature of
        // SA_SIGINFO, and does only what signal-safety(7) allows.
        unsafe {
            let (mut ours, mut before): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
            libc::sigaction(signal, ptr::null(), &raw mut before);
            // Before the handler is there, so that it finds it.
            ours.sa_sigaction = handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            (before, ours)
        }
    });
    let _ = PREVIOUS_HANDLERS.set(before.map(|(before, _)| before));
    for (signal, (_, ours)) in FAULTS.into_iter().zip(before) {
        // SAFETY: as above.
        unsafe { libc::sigaction(signal, &raw const ours, ptr::null_mut()) };
    }
}

/// The body of the thread that reports the first fault.
fn report() {
    while SIGNAL.load(Ordering::Acquire) == 0 {
        futex::wait(&FAULTED, 0, None);
    }
    let names = RUNNING.lock().join(", ");
    let signal = SIGNAL.load(Ordering::Acquire);
    let address = ADDRESS.load(Ordering::Acquire);
    lose(&format!("kernel {names} faulted at address {address:#x} (signal {signal})"));
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if is_running() && is_of_a_kernel(context) {
        // SAFETY: the kernel passes a siginfo_t to a handler with SA_SIGINFO.
        ADDRESS.store(unsafe { (*info).si_addr() } as usize, Ordering::Release);
        if SIGNAL.swap(signal, Ordering::AcqRel) == 0 {
            futex::wake_all(&FAULTED);
        }
        loop {
            // SAFETY: pause(2) has no arguments.
            unsafe { libc::pause() };
        }
    }
    pass_on(signal, info, context);
}

/// Whether the interrupted thread is one of the engine or of a stream: it blocks signals that
/// application threads hardly block together.
fn is_of_a_kernel(context: *mut c_void) -> bool {
    // SAFETY: the kernel passes a ucontext_t to a handler with SA_SIGINFO. Its mask is that of the interrupted thread.
    let mask = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_sigmask };
    // SAFETY: the set is valid.
    BLOCKED.iter().all(|signal| unsafe { libc::sigismember(mask, *signal) } == 1)
}

/// Passes a fault of the application to the previous handler or to the default action.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = PREVIOUS_HANDLERS.get().and_then(|all| FAULTS.iter().zip(all).find(|(number, _)| **number == signal));
    let Some((_, before)) = before else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default of these signals ends the process, as soon as this handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: the application has installed this handler with this flag.
        address if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            let call = mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(address);
            call(signal, info, context);
        },
        // SAFETY: the same, without the flag.
        address => unsafe {
            mem::transmute::<usize, extern "C" fn(c_int)>(address)(signal);
        },
    }
}
