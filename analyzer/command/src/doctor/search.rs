//! The places where a program would find its libraries.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// The places to search, in order of precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The directories, each with the variable or option that names it.
    pub(crate) folders: Vec<(&'static str, PathBuf)>,
    pub(crate) cache: Vec<PathBuf>,
}

/// The source of libraries from the cache.
const CACHE: &str = "the dynamic loader's cache";

/// The places to search: only that of `runtime` if it is given, with what named it, else those of the system.
pub(crate) fn places(runtime: Option<(&'static str, &Path)>) -> Places {
    match runtime {
        Some((source, runtime)) => {
            Places { folders: vec![(source, runtime.into()), (source, runtime.join("lib"))], cache: Vec::new() }
        }
        None => Places { folders: folders(|name| env::var_os(name)), cache: cache() },
    }
}

/// The places that the environment names, and the `lib` of the environment that a program or an interpreter is in.
pub(crate) fn of_environment(program: &Path) -> Places {
    Places { folders: folders(|name| env::var_os(name)), cache: Vec::new() }.and_around("the program", program)
}

impl Places {
    /// Adds the `lib` of the environment that a program is in, which need not be active.
    pub(crate) fn and_around(mut self, source: &'static str, program: &Path) -> Self {
        let mut above = program.ancestors().skip(1);
        let virtual_environment = above.clone().find(|root| root.join("pyvenv.cfg").exists());
        let around = virtual_environment.or_else(|| above.nth(1)).map(|root| root.join("lib"));
        let is_new = |folder: &PathBuf| self.folders.iter().all(|(_, known)| known != folder);
        let around = around.filter(is_new);
        self.folders.extend(around.map(|folder| (source, folder)));
        self
    }

    /// Adds the directory of a runtime, given its library.
    pub(crate) fn beside(mut self, library: Option<&Path>) -> Self {
        self.folders.extend(library.and_then(|library| Some(("runtime", library.parent()?.to_path_buf()))));
        self
    }

    pub(crate) fn and_system(mut self) -> Self {
        let system = places(None);
        self.folders.extend(system.folders);
        self.cache.extend(system.cache);
        self
    }

    pub(crate) fn first(&self, name: &str) -> Option<PathBuf> {
        self.libraries(|file| file == name).into_iter().map(|(_, path)| path).next()
    }

    /// The libraries whose file name fits, each with the source of its place.
    pub(crate) fn libraries(&self, fits: impl Fn(&str) -> bool) -> Vec<(&'static str, PathBuf)> {
        let fits = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(&fits);
        let mut found = Vec::new();
        for (source, folder) in &self.folders {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(fits).collect();
            // The newest version of a directory comes first.
            files.sort_by(|one, other| other.cmp(one));
            found.extend(files.into_iter().map(|file| (*source, file)));
        }
        found.extend(self.cache.iter().filter(|path| fits(path)).map(|path| (CACHE, path.clone())));
        found
    }

    pub(crate) fn described(&self) -> String {
        let mut names: Vec<String> =
            self.folders.iter().map(|(source, folder)| format!("{} ({source})", folder.display())).collect();
        if names.is_empty() || !self.cache.is_empty() {
            names.push(CACHE.into());
        }
        names.join(", ")
    }
}

fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, PathBuf)> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    let listed = variable("LD_LIBRARY_PATH");
    let listed = listed.iter().flat_map(env::split_paths).map(|folder| ("LD_LIBRARY_PATH", folder));
    let roots = [
        ("VIRTUAL_ENV", "lib"),
        ("CONDA_PREFIX", "lib"),
        ("CMPLR_ROOT", "lib"),
        ("ONEAPI_ROOT", "compiler/latest/lib"),
    ];
    let roots = roots.into_iter().filter_map(|(name, below)| Some((name, Path::new(&variable(name)?).join(below))));
    listed.chain(roots).collect()
}

fn cache() -> Vec<PathBuf> {
    // ldconfig is in sbin, which is often not in PATH.
    let listing = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"].into_iter().find_map(|program| {
        let output = Command::new(program).arg("-p").stdin(Stdio::null()).stderr(Stdio::null()).output();
        output.ok().filter(|output| output.status.success())
    });
    listing.map(|output| parse(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// Parses lines of the form `NAME (KIND) => PATH`.
fn parse(listing: &str) -> Vec<PathBuf> {
    listing.lines().filter_map(|line| line.split_once(" => ")).map(|(_, path)| path.trim().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_searched_in_order_of_precedence() {
        let variables = [("VIRTUAL_ENV", "/venv"), ("LD_LIBRARY_PATH", "/a:/b"), ("CONDA_PREFIX", "")];
        let found = folders(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()));
        let expected = [("LD_LIBRARY_PATH", "/a"), ("LD_LIBRARY_PATH", "/b"), ("VIRTUAL_ENV", "/venv/lib")];
        assert_eq!(found, expected.map(|(source, folder)| (source, folder.into())));
    }

    #[test]
    fn an_environment_need_not_be_active() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let around = |program: &str| Places::default().and_around("here", &root.join(program)).folders;
        assert_eq!(around("app/bin/run"), [("here", root.join("app/lib"))]);
        fs::write(root.join("pyvenv.cfg"), "").unwrap();
        for program in ["bin/python3", "lib/python3.13/site-packages/urscope/native/urscope"] {
            assert_eq!(around(program), [("here", root.join("lib"))], "{program}");
        }
        let twice = Places { folders: vec![("VIRTUAL_ENV", root.join("lib"))], cache: Vec::new() };
        assert_eq!(twice.clone().and_around("here", &root.join("bin/python3")), twice);
    }

    #[test]
    fn the_listing_of_the_cache_is_parsed() {
        let listing = "2 libs found in cache `/etc/ld.so.cache'\n\tlibz.so.1 (libc6,x86-64) => /lib/libz.so.1\n";
        assert_eq!(parse(listing), [PathBuf::from("/lib/libz.so.1")]);
    }

    #[test]
    fn libraries_are_found_by_name_and_sorted_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libsycl.so.8", "libsycl.so.9", "libother.so"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let cache = vec!["/lib/libsycl.so.7".into()];
        let places = Places { cache, ..places(Some(("--runtime", folder.path()))) };
        let found = places.libraries(|name| name.starts_with("libsycl"));
        let names: Vec<_> = found.iter().map(|(source, path)| (*source, path.file_name().unwrap())).collect();
        let expected = [("--runtime", "libsycl.so.9"), ("--runtime", "libsycl.so.8"), (CACHE, "libsycl.so.7")];
        assert_eq!(names, expected.map(|(source, name)| (source, OsStr::new(name))));
    }
}
