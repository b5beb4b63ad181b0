//! Checks the Level Zero loader and the device.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    gpu::{self, Node},
    line::Line,
    runtime::Runtime,
    search::{self, Places},
};
use crate::{
    arguments::Device,
    parts::{self, Missing},
};

/// The oldest version of the loader that the adapters accept.
const OLDEST: [u32; 3] = [1, 8, 0];

/// The oldest version of the loader for which the adapters print no warning.
const WELCOME: [u32; 3] = [1, 21, 2];

/// The loader and the devices of this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelZeroFacts {
    device: Device,
    /// The system's loader, and the file that its link points to.
    loader: Option<(PathBuf, PathBuf)>,
    /// The software device, or why it is missing.
    software: Option<Result<PathBuf, Missing>>,
    /// The GPU nodes of this machine.
    nodes: Vec<Node>,
}

/// Searches for the loader as an adapter does: in the search path, beside the adapter, in the dynamic loader's cache.
pub(crate) fn gather(device: Device, runtime: Option<&Runtime>, places: &Places, nodes: &[Node]) -> LevelZeroFacts {
    let mut places = places.clone();
    places.folders.extend(runtime.and_then(|runtime| Some(("runtime", runtime.library.parent()?.to_path_buf()))));
    let system = search::system();
    places.folders.extend(system.folders);
    places.cache.extend(system.cache);
    let loader = places.libraries(|name| name == "libze_loader.so.1").into_iter().next();
    let loader = loader.map(|(_, path)| (path.clone(), path.canonicalize().unwrap_or(path)));
    LevelZeroFacts { device, loader, software: Some(parts::device()), nodes: nodes.to_vec() }
}

/// The lines about the selected device.
pub(crate) fn lines(facts: &LevelZeroFacts) -> Vec<Line> {
    match facts.device {
        Device::Software => vec![software(facts)],
        Device::Native => vec![loader(facts), gpu::line(&facts.nodes, instead(facts))],
    }
}

fn software(facts: &LevelZeroFacts) -> Line {
    match &facts.software {
        Some(Ok(path)) => Line::ok("device", format!("the software device: {}", path.display())),
        Some(Err(missing)) => Line::problem("device", missing.found.as_str(), missing.advice),
        None => Line::problem("device", "the software device was not searched for", "this is a bug in urscope"),
    }
}

/// What to do on a machine without a GPU.
fn instead(facts: &LevelZeroFacts) -> &'static str {
    match facts.software {
        Some(Ok(_)) => "use the software device: urscope run --device software",
        _ => "install the driver of your GPU, or build the software device with `cargo build -p urscope-device-loader`",
    }
}

fn loader(facts: &LevelZeroFacts) -> Line {
    let Some((path, real)) = &facts.loader else {
        let (found, advice) = ("no Level Zero loader (libze_loader.so.1)", "install the package libze1 or level-zero");
        // Without a GPU, the loader is not needed.
        return if facts.nodes.is_empty() {
            Line::warning("level zero", found, instead(facts))
        } else if facts.nodes.iter().all(|node| node.nvidia) {
            Line::ok("level zero", found).with("the CUDA adapter does not need it")
        } else {
            Line::problem("level zero", found, advice)
        };
    };
    let found = format!("Level Zero loader {}", path.display());
    match version(real) {
        Some(number) => {
            let found = format!("{found}, version {}.{}.{}", number[0], number[1], number[2]);
            if number < OLDEST {
                Line::problem("level zero", found, "the adapters refuse loaders older than 1.8.0: install a newer one")
            } else if number < WELCOME {
                Line::warning(
                    "level zero",
                    found,
                    "the adapters ask for 1.21.2 or newer; physical-memory and event IPC need it",
                )
            } else {
                Line::ok("level zero", found)
            }
        }
        None => Line::ok("level zero", found),
    }
}

/// The version in a file name such as `libze_loader.so.1.28.2`.
fn version(file: &Path) -> Option<[u32; 3]> {
    let name = file.file_name().and_then(OsStr::to_str)?;
    let mut numbers = name.strip_prefix("libze_loader.so.")?.split('.').map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{gpu::tests::node, line::State};

    fn states(facts: &LevelZeroFacts) -> Vec<State> {
        lines(facts).iter().map(|line| line.state).collect()
    }

    fn loader(version: &str) -> (PathBuf, PathBuf) {
        ("/lib/libze_loader.so.1".into(), format!("/lib/libze_loader.so.{version}").into())
    }

    #[test]
    fn without_a_gpu_the_software_device_is_suggested() {
        let software = Some(Ok("/opt/libze_loader.so".into()));
        let facts = LevelZeroFacts { software: software.clone(), ..LevelZeroFacts::default() };
        assert_eq!(states(&facts), [State::Warning; 2]);
        assert!(lines(&facts)[1].advice.as_ref().unwrap().contains("--device software"));
        assert_eq!(
            states(&LevelZeroFacts { device: Device::Software, software, ..LevelZeroFacts::default() }),
            [State::Ok]
        );
        let missing = Some(Err(Missing { found: "the software device was not found".into(), advice: "build it" }));
        assert_eq!(
            states(&LevelZeroFacts { device: Device::Software, software: missing, ..LevelZeroFacts::default() }),
            [State::Problem]
        );
    }

    #[test]
    fn a_gpu_needs_a_loader_and_permission() {
        let usable = vec![node("dri/renderD128", false, true)];
        let locked = vec![node("dri/renderD128", false, false)];
        assert_eq!(
            states(&LevelZeroFacts { nodes: usable.clone(), ..LevelZeroFacts::default() }),
            [State::Problem, State::Ok]
        );
        let facts = LevelZeroFacts { nodes: usable, loader: Some(loader("1.28.2")), ..LevelZeroFacts::default() };
        assert_eq!(states(&facts), [State::Ok; 2]);
        assert_eq!(states(&LevelZeroFacts { nodes: locked, ..facts }), [State::Ok, State::Problem]);
        // Level Zero does not serve it.
        let nvidia = vec![node("dri/renderD128", true, true), node("nvidia0", true, true)];
        assert_eq!(states(&LevelZeroFacts { nodes: nvidia, ..LevelZeroFacts::default() }), [State::Ok; 2]);
    }

    #[test]
    fn old_loaders_are_reported() {
        for (version, state) in [("1.7.9", State::Problem), ("1.8.12", State::Warning), ("1.21.2", State::Ok)] {
            let facts = LevelZeroFacts { loader: Some(loader(version)), ..LevelZeroFacts::default() };
            assert_eq!(states(&facts)[0], state, "{version}");
        }
        assert_eq!(version(Path::new("/lib/libze_loader.so.1")), None);
    }
}
