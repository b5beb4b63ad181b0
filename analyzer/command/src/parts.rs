//! Finds the other parts of urscope: the library that is preloaded and the software device.
//!
//! They are in the directory of the command (as cargo builds them) or in `../lib` (as they are installed).
//! `../lib/libze_loader.so.1` itself is never used, because that is the system's real loader.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

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

/// The library that is preloaded.
const LIBRARY: Part = Part {
    what: "the library that is loaded into the program, liburscope.so,",
    places: &["liburscope.so", "../lib/urscope/liburscope.so", "../lib/liburscope.so"],
    advice: "build it with `cargo build -p urscope-preload`, or name it in URSCOPE_LIBRARY",
};

/// The software device.
const DEVICE: Part = Part {
    what: "the software device, libze_loader.so.1,",
    places: &[
        "device/libze_loader.so.1",
        "libze_loader.so",
        "../lib/urscope/device/libze_loader.so.1",
        "../lib/urscope/libze_loader.so.1",
        "../lib/urscope/libze_loader.so",
    ],
    advice: "build it with `cargo build -p urscope-device-loader`",
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
    places: &'static [&'static str],
    advice: &'static str,
}

/// Returns the path of the library that is preloaded.
pub(crate) fn library() -> Result<PathBuf, Missing> {
    named_library(env::var_os(LIBRARY_VARIABLE)).unwrap_or_else(|| find(&LIBRARY, &folder()))
}

/// Returns the path of the software device.
pub(crate) fn device() -> Result<PathBuf, Missing> {
    find(&DEVICE, &folder())
}

/// The directory of the command, with symbolic links resolved.
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
    let places = part.places.iter().map(|place| match (place.strip_prefix("../"), folder.parent()) {
        (Some(place), Some(parent)) => parent.join(place),
        _ => folder.join(place),
    });
    if let Some(found) = places.clone().find(|place| place.is_file()) {
        return Ok(found.canonicalize().unwrap_or(found));
    }
    let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
    let found = format!("{} was not found; searched {}", part.what, places.join(", "));
    Err(Missing { found, advice: part.advice })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_beside_the_command_come_first() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(root.path().join("lib/urscope")).unwrap();
        let missing = find(&LIBRARY, &bin).unwrap_err().to_string();
        assert!(missing.contains(&bin.join("liburscope.so").display().to_string()), "{missing}");
        assert!(missing.contains("URSCOPE_LIBRARY"), "{missing}");

        let installed = root.path().join("lib/urscope/liburscope.so");
        fs::write(&installed, "").unwrap();
        assert_eq!(find(&LIBRARY, &bin).unwrap(), installed.canonicalize().unwrap());
        let beside = bin.join("liburscope.so");
        fs::write(&beside, "").unwrap();
        assert_eq!(find(&LIBRARY, &bin).unwrap(), beside.canonicalize().unwrap());
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
