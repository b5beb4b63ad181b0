//! The records that are not calls: who wrote the trace, through which entry points calls come, and how it ended.
//!
//! They are `M` events with names that Perfetto ignores. They are rare, so they are ordinary serde types; only call
//! records are written by hand.

use serde::{Deserialize, Serialize};

use super::record::{Record, Why, unfit};
use crate::call::Nanos;

/// `urscope_header`: the process that wrote the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// [`super::FORMAT_VERSION`] of the writer.
    pub format: u32,
    /// The version of urscope that wrote the trace.
    pub urscope: String,
    /// The run that `urscope run` started, or empty.
    pub run: String,
    /// The host's name.
    pub host: String,
    /// The kernel's boot id: clocks and process ids are comparable only under the same one.
    pub boot_id: String,
    /// The inode of the time namespace: clocks have other offsets in other namespaces.
    pub time_namespace: u64,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
    /// The process id.
    pub pid: u32,
    /// When the process started, in the kernel's clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start: u64,
    /// The process that forked this one, where a traced process did; otherwise the parent process when the trace began.
    pub parent: u32,
    /// Whether the process came from a `fork` of a traced process, without an `exec`.
    pub forked: bool,
    /// When it was forked, in nanoseconds of `CLOCK_MONOTONIC`, read by the parent before the fork; absent if it was
    /// not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_ns: Option<u64>,
    /// When the fork returned in one of the two processes, whichever was first, in nanoseconds of `CLOCK_MONOTONIC`;
    /// absent if it was not forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_returned_ns: Option<u64>,
    /// The effective user id.
    pub uid: u32,
    /// What the kernel allows the process to do.
    pub rights: Rights,
    /// The executable's path.
    pub executable: String,
    /// The command line, cut off after [`Self::COMMAND_LIMIT`] bytes.
    pub command: Vec<String>,
    /// The rank of the process in its job; absent without a launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The ranks of the job that are traced, as `0,3-5`; absent if all are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ranks: String,
    /// How many ranks of the job are on other hosts; absent if none is, or if the launcher does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks_elsewhere: Option<u32>,
    /// Whether urscope came into the process while it ran: what the process had made by then is not in the trace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The clocks when the trace began.
    pub clock: Clock,
}

/// What the kernel allows a process to do when its trace begins. An absent field is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rights {
    /// `/proc/sys/kernel/yama/ptrace_scope`, 0 to 3; absent without Yama.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ptrace_scope: Option<u32>,
    /// Whether `CAP_SYS_PTRACE` is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sys_ptrace: Option<bool>,
    /// The mode of seccomp: 0 none, 1 strict, 2 a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<u32>,
    /// Whether other processes of the same user may inspect the process (`PR_GET_DUMPABLE` is 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dumpable: Option<bool>,
    /// The number of descriptors that it may have open (the soft `RLIMIT_NOFILE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
}

impl Header {
    /// The most bytes of a command line.
    pub const COMMAND_LIMIT: usize = 4096;

    /// The earliest time at which the process can have started, of `CLOCK_MONOTONIC`; `None` if nothing tells, as in
    /// the child of a fork that was not noticed.
    pub fn started(&self) -> Option<Nanos> {
        // A tick of `/proc/PID/stat` is 10 ms on all machines that urscope runs on (`USER_HZ` of the kernel).
        const TICK: u64 = 10_000_000;
        if self.forked {
            return self.forked_ns.map(Nanos);
        }
        let slept = self.clock.boottime_ns.checked_sub(self.clock.monotonic_ns)?;
        self.start.checked_mul(TICK)?.checked_sub(slept).map(Nanos)
    }
}

/// The clocks of a process, read at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// The time of a `ts` of 0, in nanoseconds of `CLOCK_MONOTONIC`.
    pub base_ns: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: u64,
}

impl Clock {
    /// The distance between two bases, in nanoseconds: 52 days.
    ///
    /// Perfetto computes in doubles of nanoseconds, which are exact below 2^53. All processes of a host that start
    /// within one step of this grid have the same base, so their raw files line up, and times stay exact for another
    /// step.
    pub const GRID: u64 = 1 << 52;

    /// The base for a process that starts now.
    pub const fn base(now: Nanos) -> u64 {
        now.0 - now.0 % Self::GRID
    }
}

/// `urscope_entry_point`: an entry point of calls into urscope, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryPoint {
    /// [`ADAPTER_TABLE`], `exported-symbol`, [`INLINE`], [`XPTI`], [`LEVEL_ZERO_DRIVER`], [`CUDA_DRIVER`], or
    /// [`UNSEEN_ADAPTER`].
    pub kind: String,
    /// The number that call records have as `via`.
    pub via: u64,
    /// The file name of the library behind it.
    pub library: String,
    /// The directory it was loaded from.
    pub directory: String,
    /// The SYCL runtimes and Unified Runtime loaders in the process, with their paths.
    pub runtime: Vec<String>,
    /// The number of slots in which functions were replaced.
    pub slots: u32,
    /// The number of slots in the adapter's IPC table: 4 before 2026.2, 11 since.
    pub ipc_slots: u32,
    /// The functions that were replaced, or are observed.
    pub functions: Vec<String>,
    /// Why functions were not replaced; empty if all were.
    pub problem: String,
}

impl EntryPoint {
    /// Whether calls come in by it.
    pub fn is_open(&self) -> bool {
        self.slots > 0 || (self.kind == XPTI && !self.functions.is_empty())
    }
}

/// The kind of an [`EntryPoint`] for an adapter whose table was asked for through urscope.
pub const ADAPTER_TABLE: &str = "adapter-table";

/// The kind of an [`EntryPoint`] for an adapter that was found loaded when the process ended, and through which calls
/// may have come that urscope could not see.
pub const UNSEEN_ADAPTER: &str = "unseen-adapter";

/// The kind of an [`EntryPoint`] for an adapter whose functions were replaced in its code, because no table reaches it.
pub const INLINE: &str = "inline";

/// The kind of an [`EntryPoint`] for an adapter whose calls are observed in XPTI's stream `ur.call`: no function was
/// replaced, so no call can be refused.
pub const XPTI: &str = "xpti";

/// The kind of an [`EntryPoint`] for a Level Zero driver whose functions were replaced.
pub const LEVEL_ZERO_DRIVER: &str = "level-zero-driver";

/// The kind of an [`EntryPoint`] for a library with functions of the CUDA driver, which were replaced.
pub const CUDA_DRIVER: &str = "cuda-driver";

/// `urscope_device`: a device that calls name by its handle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The number of its adapter, which call records have as `via`.
    pub via: u64,
    /// Its handle.
    pub device: Hex,
    /// Its handle in the interface below the adapter (`urDeviceGetNativeHandle`), such as Level Zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<Hex>,
    /// Its position among the devices of its platform, as `urDeviceGet` lists them, from 0 on; absent for one that is
    /// not in that list, such as a sub-device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its name, cut off after [`Self::NAME_LIMIT`] bytes; empty where the adapter gives none.
    pub name: String,
}

impl Device {
    /// The most bytes of a name.
    pub const NAME_LIMIT: usize = 64;
}

/// `urscope_footer`: the process ended normally.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footer {
    /// `exit` or `_exit`, or `abort` where the validation layer ended the process.
    pub how: String,
    /// The number of calls that began.
    pub calls: u64,
    /// The number of calls that returned.
    pub returned: u64,
    /// The number of call records that could not be written.
    pub lost: u64,
    /// The number of calls of each function that was called.
    pub per_function: std::collections::BTreeMap<String, u64>,
    /// The descriptors that gets of physical memory have returned and that are certainly still open, as the same open
    /// file: the latest get of each number counts. At most [`super::chrome::write::MOST_KEPT`]; only where the program
    /// is to close them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u32>,
    /// The clocks at the end.
    pub clock: Clock,
}

/// `urscope_gap`: how many records are lost. The first one, behind the header, is kept up to date; at others, a file
/// that could not grow goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// The number of records that could not be written since the beginning of the trace.
    pub lost: u64,
}

/// `urscope_exec`: the process is about to become another program. It is over then, unless a later record of this name
/// says that it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exec {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Whether it has failed: the process goes on as the program that it was.
    pub failed: bool,
}

/// A 64-bit number that is written as `"0x…"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::values::word(from).map(|word| Self(word.unwrap_or_default()))
    }
}

/// `urscope_module`: a library or program that call stacks lead through. It comes before the first such stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// The difference between an address in the process and the address in the file.
    pub bias: Hex,
    /// The lowest address in the process.
    pub start: Hex,
    /// The address after the highest.
    pub end: Hex,
    /// The path it was loaded from.
    pub path: String,
    /// The build id in hexadecimal, or empty.
    pub build_id: String,
}

/// The prefixes of the file names of the runtime's libraries.
const RUNTIME: [&str; 15] = [
    "libsycl",
    "libcuda",
    "libur_",
    "libze_",
    "libumf",
    "libOpenCL",
    "liburscope",
    "libc.so",
    "libc-",
    "libm.so",
    "libpthread",
    "libgcc_s",
    "ld-linux",
    "libstdc++",
    "libc++",
];

/// The libraries of Python: the interpreter, and what lies between a script and libsycl or a driver. Triton compiles a
/// launcher for each kernel.
const PYTHON: [&str; 6] = ["libpython", "python3", "_ctypes.", "libffi", "libDPCTL", "__triton_launcher"];

/// Packages of Python between a script and a runtime or driver.
const PACKAGES: [&str; 9] =
    ["dpctl", "torch", "cupy", "cupy_backends", "nvidia", "cuda", "numba", "numba_cuda", "triton"];

/// The sources of the package `urscope`, below the folder of that name.
const PACKAGE: [&str; 10] = [
    "__main__.py",
    "_dlpack.py",
    "_handles.py",
    "_native.py",
    "_objects.py",
    "_processes.py",
    "events.py",
    "memory.py",
    "physical.py",
    "pytest_plugin.py",
];

/// Whether a library or a source of Python at that path belongs to the runtime: to SYCL's or CUDA's, to Python and its
/// standard library, or to what is between the two. Its frames are shown only where a stack has no others.
pub fn is_of_runtime(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_standard = path.contains("/lib/python3.") && !path.contains("-packages/") || path.starts_with("<frozen ");
    let installed = path.split_once("-packages/").and_then(|(_, path)| path.split('/').next());
    let is_between = installed.is_some_and(|package| PACKAGES.contains(&package));
    let is_package = folder.rsplit('/').next() == Some("urscope") && PACKAGE.contains(&name);
    RUNTIME.iter().chain(&PYTHON).any(|beginning| name.starts_with(beginning))
        || is_standard
        || is_between
        || is_package
}

/// `urscope_stack`: a call stack, to which calls refer by its number. It comes before the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// The number of the stack in the process, from 1 on.
    pub stack: u64,
    /// The addresses that its calls return to, innermost first.
    pub frames: Vec<Hex>,
    /// The frames of Python, innermost first, if the stack leads through its interpreter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<PythonFrame>,
}

/// A frame of Python in a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PythonFrame {
    /// The position among the stack's `frames` of the function of the interpreter that runs it, from 0 on. It may run
    /// several. The number of the frames stands for one that the recorded part of the stack does not reach.
    pub at: u32,
    /// The qualified name of the function.
    pub function: String,
    /// The path of the source, as Python has it. Of a very long one, the end.
    pub file: String,
    /// The line, counted from 1; absent for an instruction without a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The first line of the statements of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// The last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
}

/// The arguments of an instant `finding`: what the validation layer found while the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The name of the rule that was broken.
    pub rule: String,
    /// `note`, `warning` or `error`.
    pub severity: String,
    /// What happened.
    pub message: String,
}

/// A record with a name in the file.
pub trait Named: Serialize {
    /// The `name` of the `M` event.
    const NAME: &'static str;
}

macro_rules! named {
    ($($record:ident: $name:literal,)*) => {
        $(impl Named for $record {
            const NAME: &'static str = $name;
        })*

        impl Record {
            /// The record with this name and these fields in JSON; `None` if no record has the name.
            pub(super) fn named(name: &str, fields: &[u8]) -> Option<Result<Self, Why>> {
                Some(match name {
                    $($name => unfit(fields).map(Self::$record),)*
                    _ => return None,
                })
            }
        }
    };
}

named! {
    Header: "urscope_header",
    EntryPoint: "urscope_entry_point",
    Device: "urscope_device",
    Module: "urscope_module",
    Stack: "urscope_stack",
    Gap: "urscope_gap",
    Exec: "urscope_exec",
    Footer: "urscope_footer",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_start_within_one_step_share_a_base() {
        assert_eq!(Clock::base(Nanos(1)), 0);
        assert_eq!(Clock::base(Nanos(Clock::GRID - 1)), 0);
        assert_eq!(Clock::base(Nanos(Clock::GRID + 5)), Clock::GRID);
        assert_eq!(2 * Clock::GRID, 1 << 53);
    }

    #[test]
    fn what_is_below_a_script_is_of_the_runtime() {
        for path in [
            "/opt/lib/libsycl.so.9",
            "/opt/lib/libur_adapter_level_zero_v2.so.0",
            "/opt/lib/libumf.so.1",
            "/usr/lib/libze_loader.so.1",
            "/usr/lib/liburscope_ipc.so",
            "/usr/bin/python3.11",
            "/usr/lib/python3.11/weakref.py",
            "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
            "/venv/lib/python3.11/site-packages/dpctl/memory/_memory.cpython-311-x86_64-linux-gnu.so",
            "/venv/lib/python3.11/site-packages/torch/multiprocessing/reductions.py",
            "/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13",
            "/venv/lib/python3.11/site-packages/cuda/bindings/driver.cpython-311-x86_64-linux-gnu.so",
            "/venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/cudadrv/driver.py",
            "/home/me/.triton/cache/ABC/__triton_launcher.cpython-311-x86_64-linux-gnu.so",
            "/venv/lib/python3.11/site-packages/urscope/memory.py",
            "<frozen runpy>",
        ] {
            assert!(is_of_runtime(path), "{path}");
        }
        for path in [
            "",
            "/home/me/app.py",
            "/home/me/urscope/app.py",
            "/home/me/memory.py",
            "/home/me/libcache.so",
            "/venv/lib/python3.11/site-packages/torchvision/library.so",
            "<stdin>",
            "python_app",
        ] {
            assert!(!is_of_runtime(path), "{path}");
        }
    }
}
