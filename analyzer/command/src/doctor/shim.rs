//! Checks the library that a run preloads.

use std::path::{Path, PathBuf};

use super::{line::Line, loading};
use crate::{elf, parts::Missing, run};

const CHECK: &str = "library";

/// The line about the library that `urscope run` would preload.
pub(crate) fn line(found: &Result<PathBuf, Missing>) -> Line {
    let path = match found {
        Ok(path) => path,
        Err(missing) => return Line::problem(CHECK, missing.found.as_str(), missing.advice),
    };
    // The dynamic loader ignores an unsuitable library, so that the run would record nothing.
    match elf::library(path) {
        Err(why) => Line::problem(CHECK, format!("{} cannot be preloaded: {why}", path.display()), ADVICE),
        Ok(library) if !library.exports.iter().any(|name| name == "urIPCGetMemHandleExp") => Line::problem(
            CHECK,
            format!("{} is not liburscope.so: it exports no urIPC functions", path.display()),
            ADVICE,
        ),
        Ok(_) if run::unfit_for_preloading(path) => {
            let found = path.display().to_string();
            preloaded(Line::ok(CHECK, found), path).with("the path contains a space, which LD_PRELOAD does not allow; `urscope run` uses a symbolic link instead")
        }
        Ok(_) => preloaded(Line::ok(CHECK, path.display().to_string()), path),
    }
}

/// The line, or a problem in its place if the library cannot be preloaded.
fn preloaded(line: Line, path: &Path) -> Line {
    let line = line.with_libraries([path]).loaded(|_| loading::preload_failure(path));
    Line { libraries: Vec::new(), ..line }
}

const ADVICE: &str =
    "build it with `cargo build -p urscope-preload` and make sure that URSCOPE_LIBRARY, if set, names it";

#[cfg(test)]
mod tests {
    use crate::doctor::{line::State, shim};

    #[test]
    fn another_library_is_recognized() {
        let ourselves = std::env::current_exe().unwrap();
        let line = shim::line(&Ok(ourselves));
        assert_eq!(line.state, State::Problem);
        assert!(line.found.contains("is not liburscope.so"), "{line:?}");

        let line = shim::line(&Ok("/nowhere/liburscope.so".into()));
        assert!(line.found.contains("No such file"), "{line:?}");
    }
}
