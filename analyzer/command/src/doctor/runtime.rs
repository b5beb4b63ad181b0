//! Checks the SYCL runtime: its release, its UR loader, its adapters, and the number of its `urIPC*` entry points.
//!
//! The version number of the UR API is the same in all relevant releases, so the files themselves are examined.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, ffi::OsStr, fs};

use urscope_schema::api::unified_runtime::VERSION;

use super::{line::Line, search::Places};
use crate::{arguments::Device, elf};

const LOADER: &str = "libur_loader.so.0";
const CUDA: &str = "libur_adapter_cuda.so.0";
const ADAPTERS: [&str; 3] = ["libur_adapter_level_zero.so.0", "libur_adapter_level_zero_v2.so.0", CUDA];

/// The names that the dispatcher of XPTI has in releases.
const DISPATCHERS: [&str; 2] = ["libxptifw.so.1", "libxptifw.so"];

const INSTALL: &str = "install one (pip install dpctl, or the oneAPI compiler) and activate its environment, or name it \
                       with --runtime DIR; a program that carries its own runtime needs none";

/// The properties of a runtime, read from its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    pub(crate) library: PathBuf,
    /// The variable or option that named the place.
    pub(crate) source: &'static str,
    /// The release of its package, or the number in the library's name.
    pub(crate) version: Option<String>,
    pub(crate) unreadable: Option<String>,
    /// Whether libsycl is linked with a UR loader instead of containing it.
    pub(crate) needs_loader: bool,
    /// How many `urIPC*` functions the UR loader beside libsycl exports; `None` if there is no loader.
    pub(crate) ipc: Option<usize>,
    pub(crate) adapters: Vec<&'static str>,
    /// The versions of Unified Runtime in the names of the adapters' files, as `0.12`.
    pub(crate) versions: BTreeSet<String>,
    pub(crate) dispatcher: Option<PathBuf>,
}

impl Runtime {
    /// A file in the directory of libsycl.
    fn beside(&self, name: &str) -> PathBuf {
        self.library.with_file_name(name)
    }

    /// Whether its adapters are no libraries of their own. The one for OpenCL shares nothing, and does not count.
    pub(crate) fn hides_adapters(&self) -> bool {
        let folder = self.library.parent().unwrap_or(Path::new("."));
        let is_adapter = |name: &str| name.starts_with("libur_adapter_") && !name.starts_with("libur_adapter_opencl");
        !names(folder).any(|name| is_adapter(&name))
    }
}

pub(crate) fn find(places: &Places) -> Option<Runtime> {
    let (source, library) = places.libraries(is_libsycl).into_iter().next()?;
    let folder = library.parent()?.to_path_buf();
    let (needs_loader, unreadable) = match elf::library(&library) {
        Ok(read) => (read.needs(LOADER), None),
        Err(why) => (false, Some(why)),
    };
    let ipc = elf::library(&folder.join(LOADER)).ok();
    let ipc = ipc.map(|loader| loader.exports.iter().filter(|name| name.starts_with("urIPC")).count());
    let adapters: Vec<_> = ADAPTERS.into_iter().filter(|name| folder.join(name).exists()).collect();
    let versions = names(&folder).filter_map(|name| api_version(&name, &adapters)).collect();
    let version = package_version(&folder).or_else(|| number(&library));
    let dispatcher = DISPATCHERS.into_iter().map(|name| folder.join(name)).find(|dispatcher| dispatcher.exists());
    Some(Runtime { library, source, version, unreadable, needs_loader, ipc, adapters, versions, dispatcher })
}

/// Whether a name is that of libsycl.so.N, and not the link for the linker or the file with the full version.
fn is_libsycl(name: &str) -> bool {
    name.strip_prefix("libsycl.so.")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The release of the package that installed the libraries in a directory.
fn package_version(folder: &Path) -> Option<String> {
    let wheel = names(folder).find_map(|name| {
        let site = name.starts_with("python3").then(|| folder.join(name).join("site-packages"))?;
        names(&site).find_map(|name| version_in(&name, "intel_sycl_rt-", ".dist-info"))
    });
    let conda =
        || names(&folder.parent()?.join("conda-meta")).find_map(|name| version_in(&name, "intel-sycl-rt-", ".json"));
    // /opt/intel/oneapi/compiler/2026.0/lib
    let installed = || {
        let real = folder.canonicalize().ok()?;
        let release =
            real.ancestors().find(|path| path.parent().and_then(Path::file_name) == Some(OsStr::new("compiler")))?;
        let release = release.file_name()?.to_str()?.to_owned();
        release.starts_with(|first: char| first.is_ascii_digit()).then_some(release)
    };
    wheel.or_else(conda).or_else(installed)
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// The version in a name such as `intel_sycl_rt-2026.2.0.dist-info` or `intel-sycl-rt-2026.2.0-intel_123.json`.
fn version_in(name: &str, package: &str, end: &str) -> Option<String> {
    let version = name.strip_prefix(package)?.strip_suffix(end)?.split('-').next()?;
    Some(version.to_owned())
}

/// The number after `.so.` in the name of the file that a link points to.
fn number(library: &Path) -> Option<String> {
    let real = library.canonicalize().ok()?;
    let (_, number) = real.file_name()?.to_str()?.split_once(".so.")?;
    Some(format!("libsycl {number}"))
}

/// The version of Unified Runtime in the name of one of these adapters: 0.12 in `libur_adapter_level_zero.so.0.12.0`.
fn api_version(name: &str, adapters: &[&str]) -> Option<String> {
    let (library, number) = name.split_once(".so.")?;
    let (version, _) = number.rsplit_once('.').filter(|(version, _)| version.contains('.'))?;
    let is_known = adapters.iter().any(|adapter| adapter.split(".so.").next() == Some(library));
    is_known.then(|| version.to_owned())
}

/// The lines about a runtime for a device, or the line that there is none, which is a problem if its place was named.
pub(crate) fn lines(runtime: Option<&Runtime>, places: &Places, device: Device, is_named: bool) -> Vec<Line> {
    let Some(runtime) = runtime else {
        let found = format!("no SYCL runtime in {}", places.described());
        let others = "programs of Level Zero and of the CUDA driver need none; for those of SYCL";
        return vec![if is_named {
            Line::problem("runtime", found, INSTALL)
        } else if device == Device::SoftwareCuda {
            Line::ok("runtime", found).with("programs of the CUDA driver need none")
        } else {
            Line::warning("runtime", found, format!("{others}, {INSTALL}"))
        }];
    };
    vec![release(runtime), loader(runtime), adapters(runtime, device)]
}

fn release(runtime: &Runtime) -> Line {
    let version = runtime.version.as_deref().unwrap_or("of unknown version");
    let found = format!("SYCL runtime {version}: {} (from {})", runtime.library.display(), runtime.source);
    match &runtime.unreadable {
        Some(why) => Line::problem("runtime", format!("{found}, {why}"), INSTALL),
        None => Line::ok("runtime", found).with_libraries([&runtime.library]),
    }
}

fn loader(runtime: &Runtime) -> Line {
    let place =
        if runtime.needs_loader { format!("{LOADER}, linked by libsycl") } else { "inside libsycl, hidden".to_owned() };
    let found = |ipc: &str| format!("UR loader {place}; urIPC entry points: {ipc}");
    let line = match runtime.ipc {
        Some(0) => {
            Line::problem("loader", found("none"), "this release has no IPC; install the SYCL runtime 2026.0 or newer")
        }
        Some(4) => Line::ok("loader", found("4 (memory)")),
        Some(11) => Line::ok("loader", found("11 (memory, physical memory, event)")),
        Some(other) => Line::warning(
            "loader",
            found(&other.to_string()),
            "only releases with 4 or 11 entry points are known; new functions of this release are not traced",
        ),
        None if runtime.needs_loader => Line::problem(
            "loader",
            format!("libsycl needs {LOADER}, which is not beside it"),
            "install the package intel-cmplr-lib-ur of the same release",
        ),
        None => Line::ok("loader", found("unknown"))
            .with(format!("{LOADER} is not beside libsycl, so they cannot be counted")),
    };
    line.with_libraries(runtime.needs_loader.then(|| runtime.beside(LOADER)))
}

fn adapters(runtime: &Runtime, device: Device) -> Line {
    let (needed, serves): (_, fn(&str) -> bool) = match device {
        Device::Software => ("Level Zero adapter (libur_adapter_level_zero*.so.0)", |name| name != CUDA),
        Device::SoftwareCuda => ("CUDA adapter (libur_adapter_cuda.so.0)", |name| name == CUDA),
        Device::Native => ("adapter (libur_adapter_level_zero*.so.0, libur_adapter_cuda.so.0)", |_| true),
    };
    if runtime.adapters.iter().any(|name| serves(name)) {
        let versions = runtime.versions.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
        let known = format!("{}.{}", VERSION >> 16, VERSION & 0xffff);
        let version = if versions.is_empty() { "of unknown version" } else { &versions };
        let found = format!("{}: Unified Runtime {version}", runtime.adapters.join(", "));
        let line = if runtime.versions.iter().all(|version| *version == known) {
            Line::ok("adapter", found)
        } else {
            let left_alone = "adapters of another one are left alone, and what they do is not judged";
            Line::warning(
                "adapter",
                found,
                format!("this version of urscope knows Unified Runtime {known}; {left_alone}"),
            )
        };
        // The one for CUDA needs NVIDIA's driver, and has a line of its own.
        let others = runtime.adapters.iter().filter(|name| **name != CUDA).map(|name| runtime.beside(name));
        return line.with_libraries([runtime.library.clone()].into_iter().chain(others));
    }
    let found = format!("no {needed} beside libsycl");
    if device == Device::SoftwareCuda {
        return Line::ok("adapter", found).with("programs of the CUDA driver need none");
    }
    let install = "install the package intel-cmplr-lib-ur of the same release";
    if runtime.hides_adapters() && runtime.dispatcher.is_some() {
        return Line::warning(
            "adapter",
            found,
            format!(
                "if adapters are linked into libsycl, `urscope run` has XPTI show their calls, which cannot be refused or replaced; \
                 otherwise {install}"
            ),
        );
    }
    let unseen = "calls into adapters that are linked into libsycl cannot be traced without libxptifw.so";
    Line::problem("adapter", found, format!("{install}; {unseen}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::line::State;

    fn states(runtime: &Runtime) -> Vec<State> {
        lines(Some(runtime), &Places::default(), Device::Native, true).iter().map(|line| line.state).collect()
    }

    fn new() -> Runtime {
        Runtime { ipc: Some(11), adapters: ADAPTERS.to_vec(), ..Runtime::default() }
    }

    #[test]
    fn releases_with_and_without_ipc_are_distinguished() {
        let [_, loader, _] = &lines(Some(&new()), &Places::default(), Device::Native, true)[..] else {
            panic!("three lines")
        };
        assert_eq!(
            loader.found,
            "UR loader inside libsycl, hidden; urIPC entry points: 11 (memory, physical memory, event)"
        );
        assert_eq!(states(&new()), [State::Ok; 3]);
        assert_eq!(states(&Runtime { needs_loader: true, ipc: Some(4), ..new() }), [State::Ok; 3]);
        assert_eq!(states(&Runtime { needs_loader: true, ipc: Some(0), ..new() })[1], State::Problem);
        assert_eq!(states(&Runtime { needs_loader: true, ipc: None, ..new() })[1], State::Problem);
        assert_eq!(states(&Runtime { ipc: Some(14), ..new() })[1], State::Warning);
        assert_eq!(states(&Runtime { adapters: Vec::new(), ..new() })[2], State::Problem);
    }

    #[test]
    fn the_version_of_adapters_comes_from_their_files() {
        for (name, version) in [
            ("libur_adapter_level_zero.so.0.12.0", Some("0.12")),
            ("libur_adapter_cuda.so.1.0.3", Some("1.0")),
            ("libur_adapter_level_zero.so.0", None),
            ("libur_adapter_opencl.so.0.12.0", None),
            ("libur_loader.so.0.12.0", None),
        ] {
            assert_eq!(api_version(name, &ADAPTERS).as_deref(), version, "{name}");
        }
        let with =
            |versions: &[&str]| Runtime { versions: versions.iter().map(|it| (*it).to_owned()).collect(), ..new() };
        for (versions, state) in
            [(&["0.12"][..], State::Ok), (&["0.13"], State::Warning), (&["0.12", "0.13"], State::Warning)]
        {
            assert_eq!(states(&with(versions))[2], state, "{versions:?}");
        }
    }

    #[test]
    fn the_adapter_of_another_gpu_does_not_serve_the_software_device() {
        let runtime = Runtime { adapters: vec![CUDA], ..new() };
        for (device, state) in [(Device::Native, State::Ok), (Device::Software, State::Problem)] {
            assert_eq!(lines(Some(&runtime), &Places::default(), device, true)[2].state, state);
        }
    }

    #[test]
    fn a_missing_runtime_is_reported_with_the_searched_places() {
        let places = Places { folders: vec![("LD_LIBRARY_PATH", "/a".into())], cache: Vec::new() };
        let [line] = &lines(None, &places, Device::Native, true)[..] else { panic!("one line") };
        assert_eq!((line.state, line.found.as_str()), (State::Problem, "no SYCL runtime in /a (LD_LIBRARY_PATH)"));
        for (device, state) in
            [(Device::Native, State::Warning), (Device::Software, State::Warning), (Device::SoftwareCuda, State::Ok)]
        {
            let [line] = &lines(None, &places, device, false)[..] else { panic!("one line") };
            assert_eq!(line.state, state, "other programs need none: {device:?}");
        }
    }

    #[test]
    fn the_version_comes_from_the_package() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib");
        let site = folder.join("python3.11/site-packages");
        fs::create_dir_all(site.join("numpy-2.4.6.dist-info")).unwrap();
        fs::write(folder.join("libsycl.so.9.0.0"), "").unwrap();
        std::os::unix::fs::symlink("libsycl.so.9.0.0", folder.join("libsycl.so.9")).unwrap();
        let places = Places { folders: vec![("--runtime", folder.clone())], cache: Vec::new() };

        let runtime = find(&places).unwrap();
        assert_eq!(runtime.version.as_deref(), Some("libsycl 9.0.0"));
        assert!(runtime.unreadable.is_some());
        assert_eq!(states(&runtime)[0], State::Problem);

        fs::create_dir_all(root.path().join("conda-meta")).unwrap();
        fs::write(root.path().join("conda-meta/intel-sycl-rt-2026.1.2-intel_9.json"), "").unwrap();
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("2026.1.2"));

        fs::create_dir_all(site.join("intel_sycl_rt-2026.2.0.dist-info")).unwrap();
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("2026.2.0"));
    }

    #[test]
    fn only_the_soname_of_libsycl_is_accepted() {
        assert!(is_libsycl("libsycl.so.9"));
        for name in ["libsycl.so", "libsycl.so.", "libsycl.so.9.0.0", "libsycl.so.9.0.0-gdb.py", "libsycl-jit.so.23"] {
            assert!(!is_libsycl(name), "{name}");
        }
    }
}
