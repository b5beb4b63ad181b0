//! Whether the library that a run preloads is there, and is one.

use std::path::PathBuf;

use super::line::Line;
use crate::{elf, parts::Missing, run};

const CHECK: &str = "library";

/// From where `urscope run` would find it.
pub(crate) fn line(found: &Result<PathBuf, Missing>) -> Line {
    let path = match found {
        Ok(path) => path,
        Err(missing) => return Line::problem(CHECK, missing.found.as_str(), missing.advice),
    };
    // Preloading an unsuitable file is not an error to the dynamic loader: the run would just see nothing.
    match elf::library(path) {
        Err(why) => Line::problem(CHECK, format!("{} cannot be preloaded: {why}", path.display()), ADVICE),
        Ok(library) if !library.exports.iter().any(|name| name == "urIPCGetMemHandleExp") => Line::problem(
            CHECK,
            format!("{} is not liburscope.so: it exports no urIPC functions", path.display()),
            ADVICE,
        ),
        Ok(_) if run::unfit_for_preloading(path) => {
            let found = path.display().to_string();
            Line::ok(CHECK, found).with("LD_PRELOAD cannot name this path, so a run goes by a symbolic link")
        }
        Ok(_) => Line::ok(CHECK, path.display().to_string()),
    }
}

const ADVICE: &str = "build it with `cargo build -p urscope-preload` and see that URSCOPE_LIBRARY, if set, names it";

#[cfg(test)]
mod tests {
    use crate::doctor::{line::State, shim};

    #[test]
    fn another_library_is_told_apart() {
        let ourselves = std::env::current_exe().unwrap();
        let line = shim::line(&Ok(ourselves));
        assert_eq!(line.state, State::Problem);
        assert!(line.found.contains("is not liburscope.so"), "{line:?}");

        let line = shim::line(&Ok("/nowhere/liburscope.so".into()));
        assert!(line.found.contains("No such file"), "{line:?}");
    }
}
