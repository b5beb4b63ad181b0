//! `urscope.toml`: what a project wants of every verdict. It stands in the current directory or in one above it, up to
//! the root of the repository.
//!
//! Options of the command line come first, and wrappers are added to them. A run says that it uses the file, because it
//! changes the verdict. A file that another user may have written is not obeyed, as git does not obey the configuration
//! of another user's repository.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{env, io, os::unix::fs::MetadataExt as _};

use clap::ValueEnum as _;
use serde::Deserialize;
use urscope_analyzer::analysis::exemptions::{LARGEST_SUPPRESSIONS, Suppressions};
use urscope_analyzer::files::{self, owners};
use urscope_analyzer::plain::plain;

use crate::arguments::{FailOn, VerdictArguments};
use crate::output::{complain, tell};

const NAME: &str = "urscope.toml";

/// The largest one that is read, in bytes.
const LARGEST: u64 = 1 << 20;

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

/// The arguments of a verdict with what the project's file adds to them.
pub(crate) fn applied(arguments: &VerdictArguments) -> Result<VerdictArguments, String> {
    match if arguments.no_config { None } else { obeyed()? } {
        Some((file, config)) => with(arguments, &file, config),
        None => Ok(arguments.clone()),
    }
}

pub(crate) fn wrappers() -> Result<Vec<String>, String> {
    Ok(obeyed()?.map(|(_, config)| config.wrappers).unwrap_or_default())
}

/// The file for the current directory and its content, unless they may be those of another user; then a line says so.
fn obeyed() -> Result<Option<(PathBuf, Config)>, String> {
    let Some(file) = env::current_dir().ok().and_then(|folder| found(&folder)) else { return Ok(None) };
    let stranger =
        |path: &Path| fs::symlink_metadata(path).ok().map(|data| data.uid()).filter(|owner| !is_trusted(*owner));
    let stranger = match (stranger(files::parent(&file)), stranger(&file)) {
        (Some(owner), _) => format!("its directory belongs to the user {owner}"),
        (None, Some(owner)) => format!("it belongs to the user {owner}"),
        (None, None) => match files::open_of(&file, is_trusted) {
            Ok(open) => return parsed(&file, open).map(|config| Some((file, config))),
            // It has another owner by now.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() => {
                error.to_string()
            }
            Err(error) => return Err(unreadable(&file, &error)),
        },
    };
    complain(format_args!("{} is not obeyed: {stranger}; give its options on the command line", file.display()));
    Ok(None)
}

/// Whether what belongs to a user is obeyed: this user, root, and the user who called sudo.
fn is_trusted(owner: u32) -> bool {
    let caller = || env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    owners().have(owner) || owners().user == 0 && caller() == Some(owner)
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

fn unreadable(file: &Path, why: &io::Error) -> String {
    format!("{} cannot be read: {why}; fix it, or give --no-config", file.display())
}

fn wrong(file: &Path, found: &str) -> String {
    const EXPECTED: &str = "suppressions = \"FILE\", wrappers = [\"FUNCTION\"] and fail-on = \"SEVERITY\"";
    format!("{}: {}; expected {EXPECTED}, or give --no-config", file.display(), plain(found))
}

fn parsed(file: &Path, open: File) -> Result<Config, String> {
    let text = text_of(open, LARGEST).map_err(|error| unreadable(file, &error))?;
    toml::from_str(&text).map_err(|error| wrong(file, error.message()))
}

fn text_of(file: File, limit: u64) -> io::Result<String> {
    String::from_utf8(files::bounded(file, limit)?).map_err(io::Error::other)
}

fn with(arguments: &VerdictArguments, file: &Path, config: Config) -> Result<VerdictArguments, String> {
    let fail_on = config.fail_on.as_deref().map(|name| FailOn::from_str(name, false)).transpose();
    let fail_on = fail_on.map_err(|found| wrong(file, &found))?;
    let mut arguments = arguments.clone();
    if let (None, Some(named)) = (&arguments.suppressions, &config.suppressions) {
        let path = below(file, named)?;
        let read = files::open_of(&path, is_trusted).and_then(|open| text_of(open, LARGEST_SUPPRESSIONS));
        let text = read.map_err(|error| wrong(file, &format!("{} is not obeyed: {error}", named.display())))?;
        let known = Suppressions::parse(&path, &text).map_err(|error| wrong(file, &error.to_string()))?;
        arguments.known = Some(known);
    }
    arguments.fail_on = arguments.fail_on.or(fail_on);
    arguments.wrapper.extend(config.wrappers);
    tell(format_args!("{} adds to the options; --no-config ignores it", file.display()));
    Ok(arguments)
}

/// A file that the project's file names: a regular one in its directory or below, also after links are followed.
fn below(file: &Path, named: &Path) -> Result<PathBuf, String> {
    let folder = files::parent(file);
    let path = folder.join(named);
    let inside = fs::canonicalize(folder).and_then(|folder| Ok(fs::canonicalize(&path)?.starts_with(folder)));
    match inside {
        Ok(true) if path.is_file() => Ok(path),
        Ok(true) => Err(wrong(file, &format!("{} is not a regular file", named.display()))),
        Ok(false) => Err(wrong(file, &format!("{} is not below the directory of this file", named.display()))),
        Err(error) => Err(wrong(file, &format!("{} cannot be read: {error}", named.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_regular_files_below_it() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        fs::create_dir_all(project.join("ci")).unwrap();
        for file in ["secret", "project/ci/known.txt"] {
            fs::write(root.path().join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../secret", project.join("link")).unwrap();
        let named = |name: &str| below(&project.join(NAME), Path::new(name));
        assert_eq!(named("ci/known.txt"), Ok(project.join("ci/known.txt")));
        for (name, why) in [
            ("../secret", "not below"),
            ("link", "not below"),
            ("/dev/zero", "not below"),
            ("ci", "not a regular file"),
            ("missing", "cannot be read"),
        ] {
            let error = named(name).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }

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
