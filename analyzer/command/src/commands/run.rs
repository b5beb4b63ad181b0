//! `urscope run`: runs a program under the shim, then analyzes its traces.

use std::{error::Error, path::PathBuf, process::ExitCode};

use crate::arguments::{RunArguments, WindowArguments};
use crate::{config, doctor, run};

/// Runs the program and analyzes its traces. Returns the program's exit code if it is not 0, else that of the verdict.
///
/// With an `interpreter`, a script or a module is a program, too.
pub(crate) fn run(mut arguments: RunArguments, interpreter: Option<PathBuf>) -> Result<ExitCode, Box<dyn Error>> {
    arguments.take_module();
    if let Some(interpreter) = interpreter.filter(|_| arguments.is_for_python()) {
        arguments.command.insert(0, interpreter.into());
    }
    if !arguments.view && arguments.window != WindowArguments::default() {
        return Err("--port, --no-open, --perfetto and --perfetto-ui have no effect without --view; add --view".into());
    }
    run::run(&arguments, &config::applied(&arguments.verdict)?, doctor::dispatcher_of, doctor::has_gpu)
}
