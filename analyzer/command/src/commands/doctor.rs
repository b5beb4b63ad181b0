//! `urscope doctor`: checks whether urscope works on this machine.

use std::{
    io::{self, BufWriter},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;

use crate::{
    arguments::{Device, PlainFormat},
    doctor,
    output::{complain, wants_color},
};

/// Check whether urscope works on this machine, and what to do if it does not.
///
/// Searches for the SYCL runtime, its adapters and the Level Zero loader. Tests whether one process can take a file descriptor
/// from another one (pidfd_getfd), because this is how memory is shared between processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope doctor\n  \
        urscope doctor --runtime ~/venv/lib --device software\n  \
        urscope doctor --format json | jq '.lines[] | select(.state == \"problem\")'\n\n\
        Exit codes: 0 no problem, 1 at least one problem.")]
pub(crate) struct Arguments {
    /// The format of the report.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// The directory of libsycl.so.*, or its parent. [default: where a program would find the SYCL runtime]
    #[arg(long, value_name = "DIR")]
    runtime: Option<PathBuf>,

    /// The device that programs run on.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    device: Device,
}

/// Checks the machine and prints the report. The exit code is 1 if there is a problem.
pub(crate) fn doctor(arguments: &Arguments) -> ExitCode {
    let out = io::stdout();
    let color = wants_color(&out);
    let mut out = BufWriter::new(out.lock());
    let Arguments { format, runtime, device } = arguments;
    let (able, written) = doctor::examine(runtime.as_deref(), *device, *format, &mut out, color);
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("the report cannot be written to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ if able => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
