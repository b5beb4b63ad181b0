//! Loads libraries as a program does, in a process of its own: one that lacks another library is useless, although its
//! file is there.

#![allow(unsafe_code, reason = "libraries are loaded, whose initialization can do anything")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fmt::Display, io, io::Write as _, os::unix::process::ExitStatusExt as _};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use urscope_analyzer::signals;

/// Why one of these libraries cannot be loaded after those before it; `None` if all can be.
pub(super) fn failure(libraries: &[PathBuf]) -> Option<String> {
    let loading = |command: &Path| {
        Command::new(command).args(["doctor-probe", "load"]).args(libraries).stdin(Stdio::null()).output()
    };
    let ended = env::current_exe().and_then(|command| loading(&command)).ok()?;
    if ended.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&ended.stdout);
    let last = said.lines().last().unwrap_or_default();
    Some(match ended.status.signal() {
        Some(signal) => {
            let signal = signal.unsigned_abs();
            let meaning = signals::meaning(signal).map_or_else(String::new, |meaning| format!(": {meaning}"));
            format!("loading {last} ends with {}{meaning}", signals::name(signal))
        }
        None => last.to_owned(),
    })
}

/// Why a library cannot be preloaded; `None` if it can be. With a C library older than 2.34, urscope's finds `dlsym`
/// only if it is loaded at the start of a process. It is named by its folder, because spaces divide LD_PRELOAD.
pub(super) fn preload_failure(library: &Path) -> Option<String> {
    let folder = library.parent()?;
    let name = library.file_name()?;
    let mut preloaded = OsString::from("./");
    preloaded.push(name);
    let mut probe = Command::new(env::current_exe().ok()?);
    probe.args(["doctor-probe", "load"]).current_dir(folder).env("LD_PRELOAD", preloaded).stdin(Stdio::null());
    let ended = probe.output().ok()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let refused = said.lines().find(|line| line.contains("cannot be preloaded"));
    let failed = (!ended.status.success()).then(|| said.lines().last().unwrap_or("a process ends that preloads it"));
    refused.or(failed).map(str::to_owned)
}

/// Loads these libraries. The last line on standard output is the one that is being loaded, or why it cannot be.
pub(super) fn load(libraries: &[PathBuf]) -> ExitCode {
    let say = |text: &dyn Display| drop(writeln!(io::stdout(), "{text}"));
    for library in libraries {
        say(&library.display());
        // SAFETY: this process does nothing else. If the library ends it, that is what its parent wants to know.
        match unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) } {
            // It stays loaded, as in a program.
            Ok(loaded) => std::mem::forget(loaded),
            Err(error) => {
                say(&format_args!("{} cannot be loaded: {}", library.display(), cause(&error)));
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The words of the dynamic loader.
fn cause(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
