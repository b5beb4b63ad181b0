//! Finds the processes of a run that use a GPU without urscope, because something has taken LD_PRELOAD from their environment.
//!
//! The kernel does not tell of a descendant that starts, so they are looked for again and again. One that ends sooner is not seen.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, process};

use urscope_schema::ranks::process_name;

use super::descendants::{numbers_below, stat};
use super::process_times::Key;

/// How the names of the libraries begin that a program opens a GPU with.
const LOADERS: [&str; 5] = ["libur_loader.so", "libur_adapter_", "libze_loader.so", "libcuda.so", "liburscope_cuda.so"];

/// The processes that were looked at.
#[derive(Debug)]
pub(super) struct Bypassed {
    /// The name of the preloaded library. Its path is another one in another root directory.
    library: OsString,
    /// The programs whose kind is known, of each process: it may become another program.
    known: HashMap<Key, HashSet<PathBuf>>,
}

impl Bypassed {
    /// Looks for processes that do not have `library`.
    pub(super) fn of(library: &Path) -> Option<Self> {
        let library = fs::canonicalize(library).ok()?.file_name()?.to_owned();
        Some(Self { library, known: HashMap::new() })
    }

    /// The processes that were found since the last look, and what is to be said of each.
    pub(super) fn look(&mut self) -> Vec<(Key, String)> {
        let found = numbers_below(process::id()).into_iter().filter_map(|pid| self.look_at(pid));
        found.collect()
    }

    fn look_at(&mut self, pid: u32) -> Option<(Key, String)> {
        let key = (pid, stat(pid)?.start);
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        if self.known.get(&key).is_some_and(|known| known.contains(&program)) {
            return None;
        }
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let names: HashSet<&OsStr> = maps.lines().filter_map(|line| file_of(line).file_name()).collect();
        let is_traced = names.contains(self.library.as_os_str());
        let has_loader = names.iter().filter_map(|name| name.to_str()).any(is_loader);
        if !is_traced && !has_loader {
            return None;
        }
        let text = process_name(&program.to_string_lossy(), pid, None);
        self.known.entry(key).or_default().insert(program);
        (!is_traced).then(|| (key, format!("{text} could not be traced, because LD_PRELOAD did not reach it")))
    }
}

/// The file of a line of `/proc/PID/maps`; empty if it has none.
fn file_of(line: &str) -> &Path {
    Path::new(line.find('/').and_then(|at| line.get(at..)).unwrap_or_default())
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
        assert!(is_loader("libze_loader.so.1.17") && is_loader("libur_adapter_level_zero.so.0"));
        assert!(!is_loader("liburscope.so") && !is_loader("libcudart.so.13"));
    }
}
