//! `urscope doctor`: checks whether urscope works on this machine.

use std::{error::Error, ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::arguments::{AnswerArguments, Device};
use crate::{doctor, output::answer};

/// Check whether urscope works on this machine, and what to do if it does not.
///
/// Searches for the SYCL runtime, its adapters and the Level Zero loader. Tests whether one process can take a file
/// descriptor from another one (pidfd_getfd), because this is how memory is shared between processes. With a program,
/// also examines how that would run: whether urscope can be loaded into it, which libraries it would get, and what its
/// call stacks would show. It is not run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope doctor\n  \
        urscope doctor --runtime ~/venv/lib --device software\n  \
        urscope doctor -- ./app\n  \
        urscope doctor --format json | jq '.lines[] | select(.state == \"problem\")'\n\n\
        Exit codes: 0 no problem, 1 at least one problem, 2 not written.")]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    form: AnswerArguments,

    /// The directory of libsycl.so.*, or its parent. [default: where a program would find the SYCL runtime]
    #[arg(long, value_name = "DIR")]
    runtime: Option<PathBuf>,

    /// The device that programs run on.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    device: Device,

    /// A program to examine, as `urscope run` takes it; its arguments have no effect.
    #[arg(last = true, value_name = "PROGRAM", num_args = 1..)]
    program: Vec<OsString>,
}

/// Checks the machine and prints the report. The exit code is 1 if there is a problem.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<ExitCode, Box<dyn Error>> {
    let program = arguments.program.first().map(OsString::as_os_str);
    let checkup = doctor::examine(arguments.runtime.as_deref(), arguments.device, program)?;
    answer(&arguments.form, &checkup, |checkup, out, paint| checkup.write(out, paint.color))?;
    Ok(if checkup.able { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
