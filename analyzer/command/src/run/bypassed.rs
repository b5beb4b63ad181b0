//! Finds the processes of a run that use a GPU without urscope, because something has taken LD_PRELOAD from their environment.
//!
//! The kernel does not tell of a descendant that starts, so they are looked for again and again. One that ends sooner is not seen.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, process};

use rustix::time::{ClockId, clock_gettime};

use super::descendants::{numbers_below, stat};
use super::process_times::Key;

/// How the names of the libraries begin that a program opens a GPU with. The loader of Unified Runtime may be in libsycl, from the start
/// of the program on: an adapter may be there for some moments only.
const LOADERS: [&str; 6] =
    ["libsycl.so", "libur_loader.so", "libur_adapter_", "libze_loader.so", "libcuda.so", "liburscope_cuda.so"];

/// How long it is at least from one look to the next.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// The minimum ratio of a pause to the processor time of the look before it. What others took meanwhile, on a busy machine, does not count.
const PAUSE: u32 = 20;

/// A program that a process has begun to execute, and where its stack began then.
type Image = (PathBuf, u64);

/// What a look at a process has shown.
pub(super) struct Looked {
    pub(super) key: Key,
    pub(super) executable: PathBuf,
    /// Whether it has the library; if not, it has a loader of a GPU.
    pub(super) is_traced: bool,
}

/// The processes that were looked at.
#[derive(Debug)]
pub(super) struct Bypassed {
    /// The name of the preloaded library. Its path is another one in another root directory.
    library: OsString,
    /// What each process has been, as far as its kind is known: it may become another program, or the same one without the library.
    known: HashMap<Key, HashSet<Image>>,
    /// When the next look is due.
    next: Instant,
}

impl Bypassed {
    /// Looks for processes that do not have `library`.
    pub(super) fn of(library: &Path) -> Option<Self> {
        let library = fs::canonicalize(library).ok()?.file_name()?.to_owned();
        Some(Self { library, known: HashMap::new(), next: Instant::now() + LOOK_AFTER })
    }

    /// How long it is until the next look.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, if that is due: the processes whose kind has become known since the last look.
    pub(super) fn look(&mut self) -> Vec<Looked> {
        if Instant::now() < self.next {
            return Vec::new();
        }
        let began = processor_time();
        let found = numbers_below(process::id()).into_iter().filter_map(|pid| self.look_at(pid)).collect();
        self.next = Instant::now() + (processor_time().saturating_sub(began) * PAUSE).max(LOOK_AFTER);
        found
    }

    fn look_at(&mut self, pid: u32) -> Option<Looked> {
        let (key, image) = image_of(pid)?;
        if self.known.get(&key).is_some_and(|known| known.contains(&image)) {
            return None;
        }
        let is_traced = self.is_traced(pid)?;
        // Of a process that ends meanwhile, or becomes another program, a part of the files is listed, or those of another one.
        if (!is_traced && self.is_traced(pid) != Some(false)) || image_of(pid) != Some((key, image.clone())) {
            return None;
        }
        let executable = image.0.clone();
        self.known.entry(key).or_default().insert(image);
        Some(Looked { key, executable, is_traced })
    }

    /// Whether a process has the library, by the files that it has mapped. `None` if it has no loader of a GPU either.
    fn is_traced(&self, pid: u32) -> Option<bool> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let names: HashSet<&OsStr> = maps.lines().filter_map(|line| file_of(line).file_name()).collect();
        let is_traced = names.contains(self.library.as_os_str());
        let has_loader = || names.iter().filter_map(|name| name.to_str()).any(is_loader);
        (is_traced || has_loader()).then_some(is_traced)
    }
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
    LOADERS.iter().any(|loader| name.starts_with(loader))
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
}
