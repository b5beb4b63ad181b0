//! Looks at the processes of a run from outside: which have urscope's library, whether that could make a trace, and
//! which use a GPU without it, because something has taken LD_PRELOAD from their environment.
//!
//! The kernel does not tell an ordinary user of a descendant that starts, so they are looked for again and again. One
//! that ends sooner is not seen.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, fs::File, process};

use object::{Object as _, ObjectSymbol as _};
use rustix::time::{ClockId, clock_gettime};
use urscope_schema::api::INTERFACES;
use urscope_schema::trace::process_times::{STATE, TraceState};

use super::book::Key;
use super::descendants::{innermost, numbers_below, stat};

/// The stand-in of the CUDA driver.
const STAND_IN: &str = "liburscope_cuda.so";

/// How long it is at least from one look to the next.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// How long it is at most from one look to the next in a quiet run while no process begins on the machine: at first,
/// and after many looks that have shown nothing new.
const LOOK_WITHIN: Duration = Duration::from_millis(500);
const LOOK_WITHIN_LATER: Duration = Duration::from_secs(16);

/// How long it is at most in a quiet run until it is asked again whether a process has begun on the machine.
const ASK_WITHIN: Duration = Duration::from_millis(100);

/// How long looks must have shown nothing new until a run is quiet.
const QUIET_AFTER: Duration = Duration::from_secs(2);

/// The minimum ratio of a pause to the processor time of the look before it, and that in a quiet run. What others took
/// meanwhile, on a busy machine, does not count.
const PAUSE: u32 = 20;
const QUIET_PAUSE: u32 = 500;

/// A program that a process has begun to execute, and where its stack began then.
type Image = (PathBuf, u64);

/// What a look at a process has shown.
pub(super) struct Looked {
    pub(super) key: Key,
    /// The number by which the process knows itself, in a pid namespace of its own.
    pub(super) own: u32,
    pub(super) executable: PathBuf,
    pub(super) kind: Kind,
    /// What it has loaded, of one that is [`Kind::Opened`].
    pub(super) loaded: &'static str,
}

/// Whether a process is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has a loader of a GPU, but not the library.
    Bypassed,
    /// It has the library.
    Preloaded,
    /// It has the library and a loader of a GPU, and no trace yet.
    Opened,
    /// The library has made a trace.
    Traced,
    /// The library could not make a trace.
    Untraced,
}

/// A process whose kind is known.
struct Known {
    image: Image,
    /// Where the library has its state, until it has made a trace or could not.
    state: Option<u64>,
    /// Whether it has a loader of a GPU, of one that has the library.
    is_opened: bool,
}

/// The processes that were looked at.
pub(super) struct Looks {
    /// The name of the preloaded library. Its path is another one in another root directory.
    library: OsString,
    /// Where the library has its state, from its beginning on; `None` of a library without one.
    state: Option<u64>,
    /// What each process is, as far as its kind is known: it may become another program, or the same one without the
    /// library.
    known: HashMap<Key, Known>,
    /// The processes that the last look found.
    found: Vec<u32>,
    /// When the next look is due, at the earliest and at the latest.
    next: Instant,
    latest: Instant,
    /// How long it is from one look to the next, at the least and at the most.
    pause: Duration,
    within: Duration,
    /// The process of the machine that began last, at the last look.
    newest: Option<u32>,
    /// When a look showed something new last.
    changed: Instant,
}

impl Looks {
    /// Looks at the processes that have `library`, and for those that do not.
    pub(super) fn for_library(library: &Path) -> Option<Self> {
        let real = fs::canonicalize(library).ok()?;
        let state = fs::read(&real).ok().and_then(|bytes| state_in(&bytes));
        let library = real.file_name()?.to_owned();
        let next = Instant::now() + LOOK_AFTER;
        Some(Self {
            library,
            state,
            known: HashMap::new(),
            found: Vec::new(),
            next,
            latest: next,
            pause: LOOK_AFTER,
            within: LOOK_WITHIN,
            newest: None,
            changed: next,
        })
    }

    /// How long it is until the next look.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether there is nothing to look at: the run is quiet, and no process has begun on the machine since the last
    /// look. What a process has loaded shows some time after its beginning only, so a quiet run is looked at, too.
    pub(super) fn has_nothing_to_look_at(&mut self) -> bool {
        let now = Instant::now();
        let nothing =
            self.is_quiet(now) && now < self.latest && self.newest.is_some() && newest_process() == self.newest;
        if nothing {
            self.next = now + self.pause;
        }
        nothing
    }

    fn is_quiet(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.changed) > QUIET_AFTER
    }

    /// Looks, if that is due: the processes whose kind has become known since the last look.
    pub(super) fn look(&mut self) -> Vec<Looked> {
        if Instant::now() < self.next {
            return Vec::new();
        }
        self.newest = newest_process();
        let began = processor_time();
        let pids = numbers_below(process::id());
        let looked: Vec<Looked> = pids.iter().filter_map(|pid| self.look_at(*pid)).collect();
        let now = Instant::now();
        if pids != self.found || !looked.is_empty() {
            (self.pause, self.within, self.changed) = (LOOK_AFTER, LOOK_WITHIN, now);
        }
        self.found = pids;
        let mut ratio = PAUSE;
        if self.is_quiet(now) {
            ratio = QUIET_PAUSE;
            self.pause = (self.pause * 2).min(ASK_WITHIN);
            self.within = (self.within * 2).min(LOOK_WITHIN_LATER);
        }
        self.next = now + (processor_time().saturating_sub(began) * ratio).max(self.pause);
        self.latest = self.next + self.within;
        looked
    }

    fn look_at(&mut self, pid: u32) -> Option<Looked> {
        let (key, image) = image_of(pid)?;
        if let Some(known) = self.known.get_mut(&key).filter(|known| known.image == image) {
            let executable = image.0;
            if let Some((own, kind)) = state_of(pid, known.state?) {
                known.state = None;
                return Some(Looked { key, own, executable, kind, loaded: "" });
            }
            let loaded = if known.is_opened { None } else { opened(&maps_of(pid)?) }?;
            known.is_opened = true;
            return Some(Looked { key, own: pid, executable, kind: Kind::Opened, loaded });
        }
        let (kind, state) = self.kind_of(pid)?;
        // Of a process that ends meanwhile, or becomes another program, a part of the files is listed, or those of
        // another one.
        let is_same = |(again, _): (Kind, _)| again == kind;
        if (kind == Kind::Bypassed && !self.kind_of(pid).is_some_and(is_same))
            || image_of(pid) != Some((key, image.clone()))
        {
            return None;
        }
        let executable = image.0.clone();
        self.known.insert(key, Known { image, state, is_opened: false });
        Some(Looked { key, own: pid, executable, kind, loaded: "" })
    }

    /// Whether a process has the library, by the files that it has mapped, and where in its memory its state is. `None`
    /// if it has no loader of a GPU either.
    fn kind_of(&self, pid: u32) -> Option<(Kind, Option<u64>)> {
        let maps = maps_of(pid)?;
        let is_library = |line: &&str| file_of(line).file_name() == Some(&self.library);
        if let Some(first) = maps.lines().find(is_library) {
            let beginning = first.split('-').next().and_then(|address| u64::from_str_radix(address, 16).ok());
            let state = beginning.zip(self.state).map(|(beginning, state)| beginning + state);
            return Some((Kind::Preloaded, state));
        }
        files_of(&maps).any(is_loader).then_some((Kind::Bypassed, None))
    }
}

/// The number of the process or thread that began last, of all on the machine; `None` where the kernel does not tell.
fn newest_process() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().last()?.parse().ok()
}

fn maps_of(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/maps")).ok()
}

/// The names of the files of a process.
fn files_of(maps: &str) -> impl Iterator<Item = &str> {
    maps.lines().filter_map(|line| file_of(line).file_name().and_then(OsStr::to_str))
}

/// What a process with these files has loaded to use a GPU, as part of a message.
fn opened(maps: &str) -> Option<&'static str> {
    let has = |begins: &str| files_of(maps).any(|name| name.starts_with(begins));
    if has(STAND_IN) {
        let on = "the software device as a CUDA driver, on which the CUDA runtime (libcudart) does not start";
        return Some(if has("libcudart.so") { on } else { "the software device as a CUDA driver" });
    }
    if has("libcuda.so") {
        return Some("the CUDA driver");
    }
    let is_runtime = has("libsycl.") || has("libur_");
    files_of(maps).any(is_loader).then_some(if is_runtime { "the SYCL runtime" } else { "a Level Zero loader" })
}

/// Where a library has its state, from its beginning on.
fn state_in(library: &[u8]) -> Option<u64> {
    let library = object::File::parse(library).ok()?;
    let mut symbols = library.dynamic_symbols();
    symbols.find(|symbol| symbol.name() == Ok(STATE)).map(|symbol| symbol.address())
}

/// What the library in a process says of its trace, at this address, with the number that the process itself knows. A
/// child of `vfork` has the memory of its parent.
fn state_of(pid: u32, address: u64) -> Option<(u32, Kind)> {
    let mut word = [0; size_of::<u64>()];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut word, address).ok()?;
    let (own, state) = TraceState::of_word(u64::from_ne_bytes(word))?;
    let kind = if state == TraceState::Made { Kind::Traced } else { Kind::Untraced };
    (own == pid || own == innermost(pid)?).then_some((own, kind))
}

/// How long this thread has run.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// What a process that has not ended executes.
fn image_of(pid: u32) -> Option<(Key, Image)> {
    let stat = stat(pid)?;
    Some(((pid, stat.start), (fs::read_link(format!("/proc/{pid}/exe")).ok()?, stat.stack)))
}

/// The file of a line of `/proc/PID/maps`; empty if it has none. It may have been replaced since.
fn file_of(line: &str) -> &Path {
    let file = line.find('/').and_then(|at| line.get(at..)).unwrap_or_default();
    Path::new(file.strip_suffix(" (deleted)").unwrap_or(file))
}

fn is_loader(name: &str) -> bool {
    let libraries = INTERFACES.iter().flat_map(|interface| interface.libraries);
    let mut loaders = libraries.filter(|library| library.opens_devices).map(|library| library.begins);
    name.starts_with(STAND_IN) || loaders.any(|loader| name.starts_with(loader))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_from_lines_of_maps() {
        let line = "7f0e5a200000-7f0e5a228000 r--p 00000000 fe:00 1835 /opt/my files/libze_loader.so.1.17";
        assert_eq!(file_of(line), Path::new("/opt/my files/libze_loader.so.1.17"));
        assert_eq!(file_of(&format!("{line} (deleted)")), file_of(line));
        assert_eq!(file_of("7ffd1000-7ffd2000 rw-p 00000000 00:00 0 [stack]"), Path::new(""));
        assert!(is_loader("libze_loader.so.1.17") && is_loader("libur_adapter_level_zero.so.0"));
        assert!(!is_loader("liburscope.so") && !is_loader("libcudart.so.13"));
    }

    #[test]
    fn what_is_loaded_is_said() {
        let of = |names: &[&str]| {
            let lines =
                names.iter().map(|name| format!("7f0e5a200000-7f0e5a228000 r--p 00000000 fe:00 1835 /lib/{name}"));
            opened(&lines.collect::<Vec<_>>().join("\n"))
        };
        assert_eq!(of(&["libc.so.6", "libcudart.so.13", "liburscope.so"]), None);
        assert_eq!(of(&["libcudart.so.13", "libcuda.so.580.159.04"]), Some("the CUDA driver"));
        assert_eq!(of(&["liburscope_cuda.so"]), Some("the software device as a CUDA driver"));
        assert!(of(&["libcudart.so.13", "liburscope_cuda.so"]).unwrap().ends_with("does not start"));
        assert_eq!(of(&["libze_loader.so.1.28.2", "libsycl.so.9"]), Some("the SYCL runtime"));
        assert_eq!(of(&["libze_loader.so.1.28.2"]), Some("a Level Zero loader"));
    }

    #[test]
    fn the_newest_process_is_known() {
        let mut child = process::Command::new("true").spawn().unwrap();
        assert!(newest_process() >= Some(0) && child.wait().unwrap().success());
        assert!(newest_process().is_some());
    }
}
