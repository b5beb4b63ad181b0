//! `urscope.toml`: what a project wants of every verdict. It stands in the current directory or in one above it, up to the root of the
//! repository.
//!
//! Options of the command line come first, and wrappers are added to them. A run says that it uses the file, because it changes the verdict.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::ValueEnum as _;
use serde::Deserialize;
use urscope_analyzer::plain::plain;

use crate::{
    arguments::{FailOn, VerdictArguments},
    output::tell,
};

/// The name of the file.
const NAME: &str = "urscope.toml";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    /// A suppressions file, relative to this file.
    suppressions: Option<PathBuf>,
    /// Functions that are no call sites, as `--wrapper`.
    #[serde(default)]
    wrappers: Vec<String>,
    /// The lowest severity that fails a run, as `--fail-on`.
    fail_on: Option<String>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConfig {
    /// It cannot be read.
    #[error("{} cannot be read: {source}; mend it, or give --no-config", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Its content is not what is expected.
    #[error("{}: {found}; expected suppressions = \"FILE\", wrappers = [\"FUNCTION\"] and fail-on = \"SEVERITY\", or give --no-config", path.display())]
    Content {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
}

/// The arguments of a verdict with what the project's file adds to them.
pub(crate) fn applied(arguments: &VerdictArguments) -> Result<VerdictArguments, NoConfig> {
    let file = std::env::current_dir().ok().filter(|_| !arguments.no_config).and_then(|folder| found(&folder));
    match file {
        Some(file) => with(arguments, &file),
        None => Ok(arguments.clone()),
    }
}

/// The wrappers that the project's file names.
pub(crate) fn wrappers() -> Result<Vec<String>, NoConfig> {
    match std::env::current_dir().ok().and_then(|folder| found(&folder)) {
        Some(file) => Ok(read(&file)?.wrappers),
        None => Ok(Vec::new()),
    }
}

/// The file in a directory or above it, up to the one that has `.git`.
fn found(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let file = folder.join(NAME);
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

fn wrong(file: &Path, found: &str) -> NoConfig {
    NoConfig::Content { path: file.to_owned(), found: plain(found) }
}

fn read(file: &Path) -> Result<Config, NoConfig> {
    let text = fs::read_to_string(file).map_err(|source| NoConfig::Unreadable { path: file.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| wrong(file, error.message()))
}

fn with(arguments: &VerdictArguments, file: &Path) -> Result<VerdictArguments, NoConfig> {
    let config = read(file)?;
    let fail_on = config.fail_on.as_deref().map(|name| FailOn::from_str(name, false)).transpose();
    let fail_on = fail_on.map_err(|found| wrong(file, &found))?;
    let beside = |path: PathBuf| file.parent().unwrap_or(Path::new(".")).join(path);
    let mut arguments = arguments.clone();
    arguments.suppressions = arguments.suppressions.or_else(|| config.suppressions.map(beside));
    arguments.fail_on = arguments.fail_on.or(fail_on);
    arguments.wrapper.extend(config.wrappers);
    tell(format_args!("{} adds to the options; --no-config ignores it", file.display()));
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_up_to_the_root_of_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("repository/src");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join(NAME), "").unwrap();
        assert_eq!(found(&inner), Some(root.path().join(NAME)));
        fs::create_dir(root.path().join("repository/.git")).unwrap();
        assert_eq!(found(&inner), None);
        fs::write(root.path().join("repository").join(NAME), "").unwrap();
        assert_eq!(found(&inner), Some(root.path().join("repository").join(NAME)));
    }
}
