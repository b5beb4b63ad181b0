//! The records that are not calls: who wrote the trace, through which entry points calls come, and how it ended.
//!
//! They are `M` events under names of ours, which Perfetto passes over. They are rare, so they are ordinary serde
//! types; only call records are written by hand.

use serde::{Deserialize, Serialize};

use crate::call::Nanos;

/// `urscope_header`: the first thing a process says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// [`super::FORMAT_VERSION`] of the writer.
    pub format: u32,
    /// The writer's own version.
    pub urscope: String,
    /// The run that `urscope run` named, or empty.
    pub run: String,
    /// The host's name.
    pub host: String,
    /// The kernel's boot id: clocks and process ids mean the same only under the same one.
    pub boot_id: String,
    /// The inode of the time namespace: clocks are shifted against other namespaces.
    pub time_namespace: u64,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
    /// The process.
    pub pid: u32,
    /// When the process started, in the kernel's clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start: u64,
    /// Its parent when the trace began.
    pub parent: u32,
    /// Whether the process came from a `fork` of a traced process, without an `exec`.
    pub forked: bool,
    /// The effective user.
    pub uid: u32,
    /// What the kernel lets the process do.
    pub rights: Rights,
    /// The executable's path.
    pub executable: String,
    /// The command line, cut where it is very long.
    pub command: Vec<String>,
    /// Its rank among the processes of its job; absent if no launcher says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The clocks.
    pub clock: Clock,
}

/// What the kernel lets a process do when its trace begins. A field that is absent is not known.
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
    /// Whether others of the same user may look into the process (`PR_GET_DUMPABLE` is 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dumpable: Option<bool>,
    /// The most descriptors that it may have open (the soft `RLIMIT_NOFILE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u64>,
}

/// The clocks of a process, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// What a `ts` of 0 means, in nanoseconds of `CLOCK_MONOTONIC`.
    pub base_ns: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: u64,
}

impl Clock {
    /// How far apart two bases are: 52 days.
    ///
    /// Perfetto computes in doubles of nanoseconds, exact below 2^53. A base on this grid is the same for all processes of
    /// a host that start within one step, so that their raw files line up, and stays exact for another step.
    pub const GRID: u64 = 1 << 52;

    /// The base for a process that starts now.
    pub const fn base(now: Nanos) -> u64 {
        now.0 - now.0 % Self::GRID
    }
}

/// `urscope_door`: a way in was tried, and this came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryPoint {
    /// `adapter-table` or `exported-symbol`.
    #[serde(rename = "door")]
    pub kind: String,
    /// The number that call records carry as `via`.
    pub via: u64,
    /// The library behind it, its file name.
    pub library: String,
    /// The directory it was loaded from.
    pub directory: String,
    /// The SYCL runtimes and Unified Runtime loaders in the process, with their paths.
    pub runtime: Vec<String>,
    /// How many slots were taken.
    pub slots: u32,
    /// How many slots the IPC table has: 4 before 2026.2, 11 since.
    pub ipc_slots: u32,
    /// The functions behind the slots.
    pub functions: Vec<String>,
    /// Why nothing, or less than all, was taken; empty when all went well.
    pub problem: String,
}

/// `urscope_footer`: the process ended in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footer {
    /// `exit` or `_exit`, or `abort` where the validation layer ended the process.
    pub how: String,
    /// How many calls began.
    pub calls: u64,
    /// How many of them returned.
    pub returned: u64,
    /// How many records of calls could not be written.
    pub lost: u64,
    /// Calls per function, those that were called at all.
    pub per_function: std::collections::BTreeMap<String, u64>,
    /// The clocks at the end.
    pub clock: Clock,
}

/// A 64-bit word that is written as `"0x…"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        super::read::word(from).map(|word| Self(word.unwrap_or_default()))
    }
}

/// `urscope_module`: a library or program that addresses of a stack lie in. It stands in front of the first such stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// What its own addresses are moved by.
    pub bias: Hex,
    /// Its lowest address in the process.
    pub start: Hex,
    /// The address behind its highest.
    pub end: Hex,
    /// The path it was loaded from.
    pub path: String,
    /// Its build id in hexadecimal, or empty.
    pub build_id: String,
}

/// The beginnings of the names of libraries that are not the program's.
const RUNTIME: [&str; 5] = ["libsycl", "libur_", "libc.so", "ld-linux", "libstdc++"];

/// Whether a library at that path is one of the runtime's: its frames are told only where a stack has no others.
pub fn is_of_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    RUNTIME.iter().any(|beginning| name.starts_with(beginning))
}

/// `urscope_stack`: a call stack, which calls name by its number. It stands in front of the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stack {
    /// Its number in the process, from 1 on.
    pub stack: u64,
    /// The addresses that its calls return to, innermost first.
    pub frames: Vec<Hex>,
}

/// The arguments of an instant `finding`: what the validation layer found while the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// The rule that was broken.
    pub rule: String,
    /// `note`, `warning` or `error`.
    pub severity: String,
    /// What happened.
    pub message: String,
}

/// What ties a record's type to its name in the file.
pub trait Named: Serialize {
    /// The `name` of the `M` event.
    const NAME: &'static str;
}

impl Named for Header {
    const NAME: &'static str = "urscope_header";
}

impl Named for EntryPoint {
    const NAME: &'static str = "urscope_door";
}

impl Named for Module {
    const NAME: &'static str = "urscope_module";
}

impl Named for Stack {
    const NAME: &'static str = "urscope_stack";
}

impl Named for Footer {
    const NAME: &'static str = "urscope_footer";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_season_share_a_base() {
        assert_eq!(Clock::base(Nanos(1)), 0);
        assert_eq!(Clock::base(Nanos(Clock::GRID - 1)), 0);
        assert_eq!(Clock::base(Nanos(Clock::GRID + 5)), Clock::GRID);
        assert_eq!(2 * Clock::GRID, 1 << 53);
    }
}
