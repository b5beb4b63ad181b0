//! Checks the nodes of the GPUs in `/dev`.

use std::{fs, path::Path};

use rustix::fs::{Access, access};

use super::line::Line;

/// The number of NVIDIA in the list of PCI vendors.
const NVIDIA: &str = "0x10de";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its path below `/dev`.
    pub(crate) name: String,
    /// Whether it belongs to a GPU of NVIDIA, which Level Zero does not serve.
    pub(crate) nvidia: bool,
    pub(crate) usable: bool,
}

/// The nodes of this machine: `/dev/dri/renderD*` of any vendor, and `/dev/nvidia*` of NVIDIA's own driver.
pub(crate) fn gather() -> Vec<Node> {
    let names = |folder: &str| -> Vec<String> {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect()
    };
    let usable = |name: &str| access(Path::new("/dev").join(name), Access::READ_OK | Access::WRITE_OK).is_ok();
    let of_dri = names("/dev/dri").into_iter().filter(|name| name.starts_with("renderD")).map(|name| {
        let vendor = fs::read_to_string(format!("/sys/class/drm/{name}/device/vendor")).unwrap_or_default();
        (format!("dri/{name}"), vendor.trim() == NVIDIA)
    });
    let of_nvidia = names("/dev").into_iter().filter(|name| is_nvidia(name)).map(|name| (name, true));
    let mut nodes: Vec<Node> =
        of_dri.chain(of_nvidia).map(|(name, nvidia)| Node { usable: usable(&name), name, nvidia }).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

/// Whether a name is that of one GPU (`nvidia0`), and not of what controls them (`nvidiactl`, `nvidia-uvm`).
fn is_nvidia(name: &str) -> bool {
    name.strip_prefix("nvidia")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The line about the nodes. `instead` says what to do without a GPU.
pub(crate) fn line(nodes: &[Node], instead: &'static str) -> Line {
    let of = |usable| {
        let names = nodes.iter().filter(|node| node.usable == usable).map(|node| node.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let usable = of(true);
    let locked = of(false);
    match (usable.is_empty(), locked.is_empty()) {
        (true, true) => Line::warning("gpu", "no GPU node (/dev/dri/renderD*, /dev/nvidia0)", instead),
        (true, false) => Line::problem(
            "gpu",
            format!("you may not read and write {locked} in /dev"),
            "become a member of the group that owns it (often render): usermod -aG render USER, then log in again",
        ),
        (false, _) => Line::ok("gpu", format!("{usable} in /dev")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::doctor::line::State;

    pub(crate) fn node(name: &str, nvidia: bool, usable: bool) -> Node {
        Node { name: name.into(), nvidia, usable }
    }

    #[test]
    fn a_gpu_needs_permission() {
        let [usable, locked] = [true, false].map(|usable| node("dri/renderD128", false, usable));
        assert_eq!(line(&[], "").state, State::Warning);
        assert_eq!(line(std::slice::from_ref(&locked), "").state, State::Problem);
        assert_eq!(line(&[locked, usable], ""), Line::ok("gpu", "dri/renderD128 in /dev"));
    }

    #[test]
    fn only_the_nodes_of_gpus_are_taken() {
        assert!(is_nvidia("nvidia0") && is_nvidia("nvidia12"));
        for name in ["nvidia", "nvidiactl", "nvidia-uvm", "nvidia0p1", "null"] {
            assert!(!is_nvidia(name), "{name}");
        }
    }
}
