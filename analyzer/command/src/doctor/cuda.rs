//! Checks Unified Runtime's CUDA adapter and NVIDIA's driver.
//!
//! What the adapter has and lacks is what its public sources say (intel/llvm, `unified-runtime/source/adapters/cuda`,
//! as of August 2026: `memory.cpp` and `ur_interface_loader.cpp`). It does not come with the runtime.

use std::path::{Path, PathBuf};
use std::{env, ffi::OsStr};

use super::{gpu::Node, line::Line, runtime::Runtime, search::Places};
use crate::elf;

const ADAPTER: &str = "libur_adapter_cuda.so.0";
const DRIVER: &str = "libcuda.so.1";

/// The function by which the UR loader asks an adapter for its table of IPC functions.
const TABLE: &str = "urGetIPCExpProcAddrTable";

#[derive(Clone, Debug, Default)]
pub(crate) struct CudaFacts {
    /// The adapter, and whether it has a table of IPC functions, or why it cannot be read.
    adapter: Option<(PathBuf, Result<bool, String>)>,
    /// The driver's library, and the file that its link points to.
    driver: Option<(PathBuf, PathBuf)>,
    nodes: Vec<Node>,
    /// Whether there is a SYCL runtime, which needs the adapter.
    has_runtime: bool,
}

/// Searches for the adapter as the UR loader does: where its variables say, beside libsycl, and where libraries are.
pub(crate) fn gather(runtime: Option<&Runtime>, places: &Places, nodes: &[Node]) -> CudaFacts {
    let variable = |name| env::var_os(name).unwrap_or_default();
    let forced = variable("UR_ADAPTERS_FORCE_LOAD");
    let forced = env::split_paths(&forced).flat_map(|part| {
        let text = part.to_string_lossy().into_owned();
        text.split([',', ';']).map(|file| PathBuf::from(file.trim_matches(['"', ' ']))).collect::<Vec<_>>()
    });
    let mut forced = forced.filter(|file| is_adapter(file) && file.exists());
    let mut places = places.clone();
    let folders = variable("UR_ADAPTERS_SEARCH_PATH");
    let folders = env::split_paths(&folders).filter(|folder| !folder.as_os_str().is_empty());
    places.folders.extend(folders.map(|folder| ("UR_ADAPTERS_SEARCH_PATH", folder)));
    let places = places.beside(runtime.map(|runtime| &*runtime.library));
    let adapter = forced.next().or_else(|| places.first(ADAPTER));
    let adapter = adapter.map(|path| {
        let has_table = elf::library(&path).map(|library| library.exports.iter().any(|name| name == TABLE));
        (path, has_table)
    });
    let driver = places.and_system().first(DRIVER).map(|path| (path.clone(), path.canonicalize().unwrap_or(path)));
    CudaFacts { adapter, driver, nodes: nodes.to_vec(), has_runtime: runtime.is_some() }
}

fn is_adapter(file: &Path) -> bool {
    file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("libur_adapter_cuda.so"))
}

impl CudaFacts {
    fn has_gpu(&self) -> bool {
        self.nodes.iter().any(|node| node.nvidia)
    }
}

/// The lines about them; none on a machine that has neither the adapter nor a GPU of NVIDIA.
pub(crate) fn lines(facts: &CudaFacts) -> Vec<Line> {
    match (&facts.adapter, facts.has_gpu()) {
        (None, false) => Vec::new(),
        (None, true) if facts.has_runtime => vec![no_adapter(facts), driver(facts)],
        (None, true) => vec![driver(facts)],
        (Some((path, has_table)), _) => {
            // It needs the driver.
            let libraries = facts.driver.iter().map(|_| path);
            vec![adapter(path, has_table).with_libraries(libraries), driver(facts)]
        }
    }
}

fn no_adapter(facts: &CudaFacts) -> Line {
    let found = format!("there is a GPU of NVIDIA, and no {ADAPTER} beside libsycl");
    let advice = "install the adapter of the same release as the runtime (Codeplay's plugin for NVIDIA GPUs), or build it from \
                  the public sources of that release; UR_ADAPTERS_SEARCH_PATH names another folder";
    // Another GPU may be the one that is meant.
    if facts.nodes.iter().any(|node| !node.nvidia) {
        return Line::ok("cuda", found).with(advice);
    }
    Line::warning("cuda", found, advice)
}

fn adapter(path: &Path, has_table: &Result<bool, String>) -> Line {
    let found = path.display().to_string();
    match has_table {
        Err(why) => Line::problem("cuda", format!("{found} cannot be loaded: {why}"), "install it again"),
        Ok(false) => Line::problem(
            "cuda",
            format!("{found} has no IPC functions"),
            "use the adapter of the runtime 2026.0 or newer",
        ),
        Ok(true) => Line::ok("cuda", format!("{found}: get, put, open and close of memory")).with(
            "it refuses physical memory and has no functions for events: programs that share these end with its refusal",
        ),
    }
}

fn driver(facts: &CudaFacts) -> Line {
    const CHECK: &str = "cuda driver";
    if let Some((path, real)) = &facts.driver {
        let version = version(real).map(|version| format!(", version {version}")).unwrap_or_default();
        return Line::ok(CHECK, format!("{}{version}", path.display())).with_libraries([path]);
    }
    let found = format!("{DRIVER} was not found");
    if facts.has_gpu() {
        let advice = "install NVIDIA's driver; a container gets it with --gpus all, or by a folder in LD_LIBRARY_PATH";
        Line::problem(CHECK, found, advice)
    } else {
        let advice = "without a GPU of NVIDIA, `urscope run --device software-cuda` brings a stand-in for programs of the driver";
        Line::ok(CHECK, found).with(advice)
    }
}

/// The version in a file name such as `libcuda.so.580.159.04`.
fn version(file: &Path) -> Option<&str> {
    let version = file.file_name()?.to_str()?.strip_prefix("libcuda.so.")?;
    version.contains('.').then_some(version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::doctor::{gpu::tests::node, line::State};

    fn new() -> CudaFacts {
        CudaFacts {
            adapter: Some((format!("/opt/{ADAPTER}").into(), Ok(true))),
            driver: Some(("/lib/libcuda.so.1".into(), "/lib/libcuda.so.580.159.04".into())),
            nodes: vec![node("nvidia0", true, true)],
            has_runtime: true,
        }
    }

    #[test]
    fn what_the_adapter_has_and_lacks_is_said() {
        let [adapter, driver] = &lines(&new())[..] else { panic!("two lines") };
        assert_eq!((adapter.state, driver.state), (State::Ok, State::Ok));
        assert_eq!(adapter.found, "/opt/libur_adapter_cuda.so.0: get, put, open and close of memory");
        let lacks = adapter.advice.as_deref().unwrap();
        assert!(lacks.contains("physical memory") && lacks.contains("events"), "{lacks}");
        assert_eq!(driver.found, "/lib/libcuda.so.1, version 580.159.04");
    }

    #[test]
    fn what_is_missing_or_cannot_be_read_is_reported() {
        let adapter = |has_table| Some((ADAPTER.into(), has_table));
        let other = || vec![node("dri/renderD128", false, true), node("nvidia0", true, true)];
        let unreadable = Err("it is not a 64-bit shared library".to_owned());
        for (facts, expected) in [
            (CudaFacts { adapter: adapter(Ok(false)), ..new() }, &[State::Problem, State::Ok][..]),
            (CudaFacts { adapter: adapter(unreadable), ..new() }, &[State::Problem, State::Ok]),
            (CudaFacts { driver: None, ..new() }, &[State::Ok, State::Problem]),
            (CudaFacts { driver: None, nodes: Vec::new(), ..new() }, &[State::Ok, State::Ok]),
            (CudaFacts::default(), &[]),
            (CudaFacts { adapter: None, ..new() }, &[State::Warning, State::Ok]),
            (CudaFacts { adapter: None, nodes: other(), ..new() }, &[State::Ok, State::Ok]),
            (CudaFacts { adapter: None, driver: None, has_runtime: false, ..new() }, &[State::Problem]),
        ] {
            let lines = lines(&facts);
            assert_eq!(lines.iter().map(|line| line.state).collect::<Vec<_>>(), expected, "{facts:?}");
            assert!(lines.is_empty() || lines.iter().any(|line| line.advice.is_some()), "{facts:?}");
        }
        assert_eq!(version(Path::new("/lib/libcuda.so.1")), None);
    }

    #[test]
    fn programs_of_the_driver_need_nothing_else() {
        let facts = CudaFacts { adapter: None, has_runtime: false, ..new() };
        let [driver] = &lines(&facts)[..] else { panic!("one line") };
        assert_eq!(driver.state, State::Ok);
    }

    #[test]
    fn the_adapter_and_the_driver_are_found_beside_libsycl() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("libcuda.so.570.1.2"), "").unwrap();
        std::os::unix::fs::symlink("libcuda.so.570.1.2", root.path().join(DRIVER)).unwrap();
        // Any library without the table.
        fs::copy(env::current_exe().unwrap(), root.path().join(ADAPTER)).unwrap();
        let runtime = Runtime { library: root.path().join("libsycl.so.9"), ..Runtime::default() };
        let facts = gather(Some(&runtime), &Places::default(), &[]);
        let lines = lines(&facts);
        assert!(lines[0].found.ends_with("libur_adapter_cuda.so.0 has no IPC functions"), "{lines:?}");
        assert!(lines[1].found.ends_with("libcuda.so.1, version 570.1.2"), "{lines:?}");
        fs::write(root.path().join(ADAPTER), "no library").unwrap();
        assert!(gather(Some(&runtime), &Places::default(), &[]).adapter.unwrap().1.is_err());
    }
}
