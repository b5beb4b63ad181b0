//! The engine that runs kernels: an OpenCL library for the CPU, which is found and not bundled.
//!
//! It is opened when the first module is created. A process that creates none never maps it. Every call that may start
//! threads of the engine runs with signals blocked, so that those threads leave the signals of the process to the
//! application; and the handlers that its compiler replaces are restored. Must never be closed.

mod ending;
pub(crate) mod faults;
mod handlers;
mod opencl;
mod program;
mod search;

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

pub(crate) use program::{CompiledKernelInfo, Function, Program};

use crate::platform::{log, threads};
use opencl::{Functions, Object};

pub(crate) struct Engine {
    cl: Functions,
    platform: Object,
    device: Object,
    context: Object,
    /// Spreads the groups of a kernel over its threads.
    parallel: Object,
    /// Runs a kernel in the thread that launches it.
    inline: Object,
}

// SAFETY: the functions of OpenCL may be called by all threads with the same objects, except for those that set the
// arguments of a kernel. `Function` has a kernel to itself.
unsafe impl Send for Engine {}
// SAFETY: the same.
unsafe impl Sync for Engine {}

/// The engine. `None` if there is none; the first such call reports that in one line.
pub(crate) fn get() -> Option<&'static Engine> {
    static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
    let start = || {
        ending::register_before_engine();
        let engine = guarded(Engine::start).inspect_err(|why| log::warn(why)).ok()?;
        ending::register_after_engine();
        faults::watch();
        Some(engine)
    };
    ENGINE.get_or_init(start).as_ref()
}

/// Runs a call of the engine that may start threads or install handlers.
fn guarded<T>(body: impl FnOnce() -> T) -> T {
    handlers::with_handlers_restored(|| threads::with_signals_blocked(body))
}

impl Engine {
    fn start() -> Result<Self, String> {
        let library = open(&search::candidates())?;
        // SAFETY: the library is the one that was found or named as an OpenCL implementation, and is never closed.
        let cl = unsafe { Functions::from_library(library) }
            .map_err(|name| format!("the engine for kernels has no {name}"))?;
        // SAFETY: the arguments are those of cl.h: arrays with their lengths, and places for results.
        unsafe {
            let mut platforms = [null_mut(); 8];
            let mut count = 0;
            (cl.get_platforms)(platforms.len() as u32, platforms.as_mut_ptr(), &raw mut count);
            for platform in platforms.into_iter().take(count as usize) {
                let mut device = null_mut();
                let found = (cl.get_devices)(platform, opencl::DEVICE_TYPE_CPU, 1, &raw mut device, null_mut());
                if found != 0 {
                    continue;
                }
                let mut code = 0;
                let context = (cl.create_context)(null(), 1, &raw const device, null_mut(), null_mut(), &raw mut code);
                if code != 0 {
                    return Err(format!("the engine for kernels makes no context: OpenCL error {code}"));
                }
                let mut queue = |properties: u64| {
                    let list = [opencl::QUEUE_PROPERTIES, properties, 0];
                    (cl.create_queue)(context, device, list.as_ptr(), &raw mut code)
                };
                let parallel = queue(opencl::OUT_OF_ORDER);
                // Only Intel's has it. Others run all kernels in their threads.
                let inline = Some(queue(opencl::IN_THE_CALLER)).filter(|queue| !queue.is_null()).unwrap_or(parallel);
                if parallel.is_null() {
                    return Err(format!("the engine for kernels makes no queue: OpenCL error {code}"));
                }
                return Ok(Self { cl, platform, device, context, parallel, inline });
            }
        }
        Err("the engine for kernels has no CPU".to_owned())
    }

    fn extension(&self, name: &CStr) -> Option<*mut std::ffi::c_void> {
        // SAFETY: the platform is live, and the name is a C string.
        let found = unsafe { (self.cl.get_extension_function)(self.platform, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }
}

/// Opens the first library that can be opened, or says why none could.
fn open(candidates: &[String]) -> Result<*mut std::ffi::c_void, String> {
    let mut reason = "ZE_SOFT_ENGINE is off".to_owned();
    for name in candidates {
        let Ok(name) = CString::new(name.as_str()) else { continue };
        // SAFETY: the name is a C string. What a library does when it is opened is the choice of whoever installed it.
        unsafe {
            let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if !library.is_null() {
                return Ok(library);
            }
            let error = libc::dlerror();
            if !error.is_null() {
                reason = CStr::from_ptr(error).to_string_lossy().into_owned();
            }
        }
    }
    Err(format!("no engine for kernels ({reason}): pip install intel-opencl-rt, or set ZE_SOFT_ENGINE"))
}
