//! The process: its properties, and a handler for its end.
//!
//! A property that the kernel does not provide is missing in the header.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::{fs, io, os::unix::ffi::OsStrExt as _, path::Path};

use urscope_schema::host::proc_stat::ProcStat;
use urscope_schema::trace::FORMAT_VERSION;
use urscope_schema::trace::records::{Header, Rights};

use super::fork;
use crate::raw::{clock, files::plain_file};

/// The process id, from the kernel.
pub fn id() -> u32 {
    std::process::id()
}

/// The process id, mostly without a system call.
#[inline]
pub fn cached_id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = id();
            ID.store(id, Ordering::Relaxed);
            id
        }
        known => known,
    }
}

/// Forgets the process id, in a forked child.
pub fn forget_id() {
    ID.store(0, Ordering::Relaxed);
}

/// 0 if it is unknown.
static ID: AtomicU32 = AtomicU32::new(0);

/// The header of this process, with the clocks as they are now. `rank` is its rank in an MPI job, and `late`
/// whether this library was loaded into a process that ran.
pub fn describe(run: &str, forked: bool, rank: Option<u32>, late: bool) -> Header {
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    let fork = fork::own().filter(|_| forked);
    Header {
        format: FORMAT_VERSION,
        urscope: env!("CARGO_PKG_VERSION").into(),
        run: run.into(),
        host: host(),
        boot_id: plain_file::text("/proc/sys/kernel/random/boot_id").trim().into(),
        time_namespace: inode("/proc/self/ns/time"),
        pid_namespace: inode("/proc/self/ns/pid"),
        pid: id(),
        start: start_of(id()).unwrap_or(0),
        parent: fork.map_or_else(std::os::unix::process::parent_id, |fork| fork.parent),
        forked,
        forked_ns: fork.map(|fork| fork.began.0),
        fork_returned_ns: fork.map(|fork| fork.returned.0),
        uid: user(),
        rights: rights(),
        executable: executable.to_string_lossy().into_owned(),
        command: command(),
        rank,
        late,
        ranks: String::new(),
        ranks_elsewhere: None,
        clock: clock::snapshot(),
    }
}

/// The environment variables with a prefix, and their values. The others are not copied: most processes have many
/// variables and none of urscope's.
///
/// Like getenv(3), it must not run while another thread changes the environment. It does not take the standard
/// library's lock, which is on a page of its own.
pub fn variables(prefix: &str) -> Vec<(String, OsString)> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut found = Vec::new();
    // SAFETY: environ(7) is null, or an array of C strings that ends with a null pointer.
    unsafe {
        let mut place = environ;
        while !place.is_null() && !(*place).is_null() {
            let variable = CStr::from_ptr(*place).to_bytes();
            if variable.starts_with(prefix.as_bytes()) {
                let mut parts = variable.splitn(2, |byte| *byte == b'=');
                let [name, value] = [parts.next(), parts.next()].map(Option::unwrap_or_default);
                found.push((String::from_utf8_lossy(name).into_owned(), OsStr::from_bytes(value).to_owned()));
            }
            place = place.add(1);
        }
    }
    found
}

/// The effective user id.
pub fn user() -> u32 {
    // SAFETY: geteuid(2) has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The name of the process: the file name of the executable.
pub fn name(header: &Header) -> &str {
    Path::new(&header.executable).file_name().and_then(|name| name.to_str()).unwrap_or("unknown")
}

/// The host's name.
pub fn host() -> String {
    plain_file::text("/proc/sys/kernel/hostname").trim().into()
}

fn inode(path: &str) -> u64 {
    plain_file::status(Path::new(path)).map_or(0, |namespace| namespace.st_ino)
}

/// The rights of this process.
fn rights() -> Rights {
    let status = plain_file::text("/proc/self/status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let scope = plain_file::text("/proc/sys/kernel/yama/ptrace_scope");
    let effective = field("CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
    // SAFETY: PR_GET_DUMPABLE has no further arguments and touches no memory.
    let dumpable = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
    Rights {
        ptrace_scope: scope.trim().parse().ok(),
        sys_ptrace: effective.map(|set| set >> CAP_SYS_PTRACE & 1 == 1),
        seccomp: field("Seccomp:").and_then(|mode| mode.parse().ok()).or_else(seccomp),
        dumpable: (dumpable >= 0).then_some(dumpable == 1),
        descriptors: limit(libc::RLIMIT_NOFILE),
    }
}

/// The mode of seccomp, where /proc is out of reach.
fn seccomp() -> Option<u32> {
    // SAFETY: PR_GET_SECCOMP has no further arguments and touches no memory.
    u32::try_from(unsafe { libc::prctl(libc::PR_GET_SECCOMP) }).ok()
}

/// `linux/capability.h`
const CAP_SYS_PTRACE: u32 = 19;

/// The number of open descriptors. Kernels before 6.2 do not provide it, so the list is counted.
pub fn open_descriptors() -> Option<u64> {
    const OPEN: &str = "/proc/self/fd";
    match plain_file::status(Path::new(OPEN)).map(|folder| folder.st_size as u64) {
        // Without the descriptor of the list.
        Ok(0) => fs::read_dir(OPEN).ok().map(|list| (list.count() as u64).saturating_sub(1)),
        number => number.ok(),
    }
}

/// A soft limit.
fn limit(of: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) fills the structure that it is given.
    (unsafe { libc::getrlimit(of, &raw mut limit) } == 0).then_some(limit.rlim_cur)
}

/// When a process started, in clock ticks since boot. `ESRCH` if it does not exist, or if its `/proc/PID/stat` has an
/// unknown form.
pub fn start_of(pid: u32) -> io::Result<u64> {
    // The name of a process need not be UTF-8.
    let stat = plain_file::read(format!("/proc/{pid}/stat"))?;
    ProcStat::parse(&String::from_utf8_lossy(&stat))
        .map(|stat| stat.start)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

fn command() -> Vec<String> {
    let bytes = plain_file::read("/proc/self/cmdline").unwrap_or_default();
    let shown = bytes.get(..Header::COMMAND_LIMIT).unwrap_or(&bytes);
    let mut words: Vec<String> =
        shown.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    if words.last().is_some_and(String::is_empty) {
        words.pop();
    }
    if shown.len() < bytes.len() {
        words.push("…".into());
    }
    words
}

/// Calls `end` when the process calls `exit` or `quick_exit`, or returns from `main`.
///
/// The handler is registered without a library, so it runs in the order of registration. The constructor of this
/// preloaded library runs before the C library registers the finalizers of all libraries, so `end` runs after the
/// last destructor.
pub fn on_exit(end: fn()) {
    static END: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn call_end() {
        // SAFETY: only `on_exit` stores here, before it registers this function, and it stores an address of `fn()`.
        let end = unsafe { std::mem::transmute::<usize, fn()>(END.load(Ordering::Acquire)) };
        end();
    }

    extern "C" fn call_end_of_all(_: *mut c_void) {
        call_end();
    }

    unsafe extern "C" {
        // C++ ABI (3.3.6.3). Without a library's handle, the handler runs at the end of the process.
        fn __cxa_atexit(handler: extern "C" fn(*mut c_void), argument: *mut c_void, library: *mut c_void) -> c_int;
        // stdlib.h; the libc crate does not declare it for this target.
        fn at_quick_exit(handler: extern "C" fn()) -> c_int;
    }

    END.store(end as usize, Ordering::Release);
    // SAFETY: the handlers are `extern "C"` functions of a library that is never unloaded, and use no argument.
    unsafe {
        __cxa_atexit(call_end_of_all, std::ptr::null_mut(), std::ptr::null_mut());
        at_quick_exit(call_end);
    }
}

/// Whether the process is setuid, setgid, or has file capabilities. Its environment cannot be trusted then.
pub fn has_gained_rights() -> bool {
    // SAFETY: getauxval(3) touches no memory of ours.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The largest file that this process may write, in bytes. Writing more raises SIGXFSZ.
pub fn file_size_limit() -> u64 {
    limit(libc::RLIMIT_FSIZE).unwrap_or_default()
}

/// Whether this thread blocks a signal, as in every signal handler and rarely elsewhere.
pub fn may_be_in_signal_handler() -> bool {
    // SAFETY: an all-zero set is valid; sigprocmask(2) without a new set only fills it.
    let mut blocked = unsafe { std::mem::zeroed::<libc::sigset_t>() };
    // SAFETY: as above; sigismember(3) reads the set.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked);
        (1..libc::SIGRTMIN()).any(|signal| libc::sigismember(&raw const blocked, signal) == 1)
    }
}

/// Ends the process like `_exit(2)`, without `atexit` handlers.
pub fn exit_now(status: i32) -> ! {
    loop {
        // SAFETY: exit_group(2) ends the process and does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let header = describe("run", false, Some(3), false);
        assert_eq!(header.pid, std::process::id());
        assert!(header.start > 0 && header.time_namespace > 0 && !header.boot_id.is_empty());
        assert!(header.executable.contains(name(&header)));
        assert_eq!(header.command, std::env::args().collect::<Vec<_>>());
        let rights = header.rights;
        assert!(rights.sys_ptrace.is_some() && rights.seccomp.is_some() && rights.dumpable.is_some(), "{rights:?}");
    }

    #[test]
    fn variables_are_found_by_the_beginning_of_their_names() {
        let all: Vec<_> =
            std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value)).collect();
        assert_eq!(variables(""), all);
        let cargo: Vec<_> = all.into_iter().filter(|(name, _)| name.starts_with("CARGO_")).collect();
        assert!(!cargo.is_empty());
        assert_eq!(variables("CARGO_"), cargo);
        assert!(variables("A name that nobody has").is_empty());
    }

    #[test]
    fn a_descriptor_that_is_opened_is_counted() {
        let limit = rights().descriptors.unwrap();
        let before = open_descriptors().unwrap();
        assert!((3..limit).contains(&before), "{before}");
        let opened: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close descriptors meanwhile.
        assert!(open_descriptors().unwrap() >= before + 50);
        drop(opened);
    }
}
