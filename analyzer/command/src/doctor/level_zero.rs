//! Checks the Level Zero loader and the device.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::gpu::{self, Node};
use super::{line::Line, runtime::Runtime, search::Places};
use crate::arguments::Device;
use crate::parts::{self, Missing};

/// The oldest version of the loader that the adapters accept.
const OLDEST: [u32; 3] = [1, 8, 0];

/// The oldest version of the loader for which the adapters print no warning.
const WELCOME: [u32; 3] = [1, 21, 2];

#[derive(Clone, Debug)]
pub(crate) struct LevelZeroFacts {
    device: Device,
    /// The system's loader, and the file that its link points to.
    loader: Option<(PathBuf, PathBuf)>,
    /// The software device, or why it is missing.
    software: Result<PathBuf, Missing>,
    nodes: Vec<Node>,
}

/// Searches for the loader as an adapter does: in the search path, beside the adapter, in the dynamic loader's cache.
pub(crate) fn gather(device: Device, runtime: Option<&Runtime>, places: &Places, nodes: &[Node]) -> LevelZeroFacts {
    let loader =
        places.clone().beside(runtime.map(|runtime| &*runtime.library)).and_system().first("libze_loader.so.1");
    let loader = loader.map(|path| (path.clone(), path.canonicalize().unwrap_or(path)));
    let software = if device == Device::SoftwareCuda { parts::cuda() } else { parts::device() };
    LevelZeroFacts { device, loader, software, nodes: nodes.to_vec() }
}

pub(crate) fn lines(facts: &LevelZeroFacts) -> Vec<Line> {
    match facts.device {
        Device::Software | Device::SoftwareCuda => vec![software(facts)],
        Device::Native => vec![loader(facts), gpu::line(&facts.nodes, instead(facts))],
    }
}

fn software(facts: &LevelZeroFacts) -> Line {
    match &facts.software {
        Ok(path) => Line::ok("device", format!("the software device: {}", path.display())).with_libraries([path]),
        Err(missing) => Line::problem("device", missing.found.as_str(), missing.advice),
    }
}

/// What to do on a machine without a GPU.
fn instead(facts: &LevelZeroFacts) -> &'static str {
    match facts.software {
        Ok(_) => {
            "use the software device: urscope run --device software, or --device software-cuda for programs of the CUDA driver"
        }
        Err(_) => {
            "install the driver of your GPU, or build the software device with `cargo build -p urscope-device-loader`"
        }
    }
}

fn loader(facts: &LevelZeroFacts) -> Line {
    let Some((path, real)) = &facts.loader else {
        let found = "no Level Zero loader (libze_loader.so.1)";
        let advice = "install the package libze1 or level-zero";
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
    let line = match version(real) {
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
    };
    line.with_libraries([path])
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

    fn facts(loader: Option<&str>, nodes: &[Node]) -> LevelZeroFacts {
        let real = |version| format!("/lib/libze_loader.so.{version}").into();
        let loader = loader.map(|version| ("/lib/libze_loader.so.1".into(), real(version)));
        let software = Ok("/opt/libze_loader.so".into());
        LevelZeroFacts { device: Device::Native, loader, software, nodes: nodes.to_vec() }
    }

    #[test]
    fn without_a_gpu_the_software_device_is_suggested() {
        let native = facts(None, &[]);
        assert_eq!(states(&native), [State::Warning; 2]);
        assert!(lines(&native)[1].advice.as_ref().unwrap().contains("--device software"));
        let software = LevelZeroFacts { device: Device::Software, ..native };
        assert_eq!(states(&software), [State::Ok]);
        let missing = Err(Missing { found: "the software device was not found".into(), advice: "build it" });
        assert_eq!(states(&LevelZeroFacts { software: missing, ..software }), [State::Problem]);
    }

    #[test]
    fn a_gpu_needs_a_loader_and_permission() {
        let [usable, locked] = [true, false].map(|usable| node("dri/renderD128", false, usable));
        // Level Zero does not serve it.
        let nvidia = [node("dri/renderD128", true, true), node("nvidia0", true, true)];
        for (loader, nodes, expected) in [
            (None, &[usable.clone()][..], [State::Problem, State::Ok]),
            (Some("1.28.2"), &[usable], [State::Ok; 2]),
            (Some("1.28.2"), &[locked], [State::Ok, State::Problem]),
            (None, &nvidia, [State::Ok; 2]),
        ] {
            assert_eq!(states(&facts(loader, nodes)), expected, "{loader:?} {nodes:?}");
        }
    }

    #[test]
    fn old_loaders_are_reported() {
        for (version, state) in [("1.7.9", State::Problem), ("1.8.12", State::Warning), ("1.21.2", State::Ok)] {
            assert_eq!(states(&facts(Some(version), &[]))[0], state, "{version}");
        }
        assert_eq!(version(Path::new("/lib/libze_loader.so.1")), None);
    }
}
