//! `urscope doctor`: says whether this machine can do it, and what to do if not.

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

/// Say whether this machine can do it, and what to do if not.
///
/// Looks for the SYCL runtime, its adapters and the Level Zero loader, and tries whether one process may take a file
/// descriptor from another one (pidfd_getfd), which is how memory handles travel between processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope doctor\n  \
        urscope doctor --runtime ~/venv/lib --device software\n  \
        urscope doctor --format json | jq '.lines[] | select(.state == \"problem\")'\n\n\
        Exit codes: 0 it can, 1 there is a problem.")]
pub(crate) struct Arguments {
    /// The form of the report.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// Where the SYCL runtime is: the directory of libsycl.so.*, or the one above it. Otherwise it is looked for where
    /// a program would find it.
    #[arg(long, value_name = "DIR")]
    runtime: Option<PathBuf>,

    /// The device that programs shall run on.
    #[arg(long, value_enum, default_value_t, value_name = "DEVICE")]
    device: Device,
}

/// Examines the machine and prints the report; the exit code says whether there is a problem.
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
