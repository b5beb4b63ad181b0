//! Finds the other parts of urscope: the library that is preloaded and the software device.
//!
//! They are beside the command, as in a cargo build and in the wheel, or in `lib/urscope` or `lib64/urscope` of the
//! tree whose `bin` has the command. `lib/libze_loader.so.1` is never used, because that is the system's real loader.

use std::path::{Path, PathBuf};
use std::{env, ffi::OsString};

/// The environment variable that names another library.
pub(crate) const LIBRARY_VARIABLE: &str = "URSCOPE_LIBRARY";

/// The list of the variables of the preloaded library, generated from its source code.
pub(crate) const KNOBS: &str = include_str!("../../../docs/knobs.md");

/// The variables of the command alone, and what each does.
pub(crate) const OWN_VARIABLES: [(&str, &str); 6] = [
    (LIBRARY_VARIABLE, "The liburscope.so that `urscope run` preloads, instead of the one beside the command."),
    ("NO_COLOR", "Output has no colours, unless --color always is given."),
    ("CLICOLOR_FORCE", "1: output has colours, also if it is no terminal."),
    ("TERM", "`dumb`: the terminal shows no colours, and `urscope top` writes the state once."),
    ("BROWSER", "The browsers that `urscope view` tries, separated by colons."),
    (
        "GITHUB_WORKSPACE",
        "The directory that paths in SARIF and in annotations are relative to, instead of the current one.",
    ),
];

/// Where the libraries are, seen from the directory of the command.
const FOLDERS: [&str; 3] = ["", "../lib/urscope", "../lib64/urscope"];

const LIBRARY: Part = Part {
    what: "the library that is loaded into the program,",
    name: "liburscope.so",
    advice: "install urscope again; in a checkout, build it with `cargo build -p urscope-preload`; or name it in URSCOPE_LIBRARY",
};

/// The software device, which stands in for `libze_loader.so.1`.
const DEVICE: Part = Part {
    what: "the software device,",
    name: "libze_loader.so",
    advice: "install urscope again; in a checkout, build it with `cargo build -p urscope-device-loader`",
};

/// The software device as a stand-in for `libcuda.so.1`.
const CUDA: Part = Part {
    what: "the software device for CUDA,",
    name: "liburscope_cuda.so",
    advice: "install urscope again; in a checkout, build it with `cargo build -p urscope-device-cuda`",
};

/// The error that a part was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {advice}")]
pub(crate) struct Missing {
    /// What was expected, and the paths that were searched.
    pub(crate) found: String,
    /// What the user can do about it.
    pub(crate) advice: &'static str,
}

struct Part {
    what: &'static str,
    name: &'static str,
    advice: &'static str,
}

pub(crate) fn library() -> Result<PathBuf, Missing> {
    named_library(env::var_os(LIBRARY_VARIABLE)).unwrap_or_else(|| find(&LIBRARY, &folder()))
}

pub(crate) fn device() -> Result<PathBuf, Missing> {
    find(&DEVICE, &folder())
}

pub(crate) fn cuda() -> Result<PathBuf, Missing> {
    find(&CUDA, &folder())
}

/// The folder of the Python package in the tree, or in a checkout. In a wheel, the package is where Python finds it.
pub(crate) fn python() -> Option<PathBuf> {
    let libraries = library().ok()?;
    let libraries = libraries.parent()?;
    let mut places = [libraries.join("python"), libraries.join("../../python")].into_iter();
    let found = places.find(|place| place.join("urscope/__init__.py").is_file())?;
    Some(found.canonicalize().unwrap_or(found))
}

/// The directory of the command. The kernel names the executable without symbolic links.
fn folder() -> PathBuf {
    env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)).unwrap_or_default()
}

fn named_library(name: Option<OsString>) -> Option<Result<PathBuf, Missing>> {
    let named = PathBuf::from(name.filter(|name| !name.is_empty())?);
    let absolute = std::path::absolute(&named).unwrap_or(named);
    Some(if absolute.is_file() {
        Ok(absolute)
    } else {
        let found = format!("{LIBRARY_VARIABLE} names {}, which is not a file", absolute.display());
        Err(Missing { found, advice: "give the path of liburscope.so, or unset it" })
    })
}

fn find(part: &Part, folder: &Path) -> Result<PathBuf, Missing> {
    let places = FOLDERS.iter().map(|place| match (place.strip_prefix("../"), folder.parent()) {
        (Some(place), Some(parent)) => parent.join(place).join(part.name),
        _ => folder.join(place).join(part.name),
    });
    if let Some(found) = places.clone().find(|place| place.is_file()) {
        return Ok(found.canonicalize().unwrap_or(found));
    }
    let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
    let found = format!("{} {}, was not found; searched {}", part.what, part.name, places.join(", "));
    Err(Missing { found, advice: part.advice })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_libraries_are_beside_the_command_or_in_its_tree() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let missing = find(&LIBRARY, &bin).unwrap_err().to_string();
        assert!(missing.contains(&bin.join("liburscope.so").display().to_string()), "{missing}");
        assert!(missing.contains("URSCOPE_LIBRARY"), "{missing}");

        // From the last place that is searched to the first.
        for place in ["lib64/urscope", "lib/urscope", "bin"] {
            let folder = root.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            for part in [&LIBRARY, &DEVICE] {
                let file = folder.join(part.name);
                fs::write(&file, "").unwrap();
                assert_eq!(find(part, &bin).unwrap(), file.canonicalize().unwrap());
            }
        }
    }

    #[test]
    fn a_link_in_place_of_lib_is_followed() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["bin", "elsewhere/urscope"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let library = root.path().join("elsewhere/urscope/liburscope.so");
        fs::write(&library, "").unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join("lib64")).unwrap();
        assert_eq!(find(&LIBRARY, &root.path().join("bin")).unwrap(), library.canonicalize().unwrap());
    }

    #[test]
    fn the_loader_of_the_system_is_not_the_software_device() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("bin")).unwrap();
        fs::create_dir_all(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/libze_loader.so.1"), "").unwrap();
        fs::write(root.path().join("bin/libze_loader.so.1"), "").unwrap();
        assert!(find(&DEVICE, &root.path().join("bin")).is_err());
    }

    #[test]
    fn a_named_library_must_exist() {
        assert!(named_library(None).is_none());
        assert!(named_library(Some("".into())).is_none());
        let error = named_library(Some("/nowhere/liburscope.so".into())).unwrap().unwrap_err().to_string();
        assert!(error.contains("URSCOPE_LIBRARY names /nowhere/liburscope.so"), "{error}");
    }
}
