//! The errors that keep `urscope run` from running a program.

use std::{ffi::OsStr, io, path::PathBuf};

use urscope_analyzer::ExemptionError;

use crate::{output::Unwritable, parts::Missing, program::NoProgram, window::NoWindow};

/// Why a program was not run. Each message states what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// No program follows the options.
    #[error("no program is given; expected urscope run [OPTIONS] -- PROGRAM [ARGUMENTS]")]
    NoProgram,
    /// There is no such program, or it cannot be executed.
    #[error(transparent)]
    Program(#[from] NoProgram),
    /// The preloaded library or the software device is missing.
    #[error(transparent)]
    Part(#[from] Missing),
    /// The user wants XPTI, and its dispatcher is not found.
    #[error(
        "URSCOPE_ENTRY=xpti needs libxptifw.so, which is not beside the libsycl that the program would load; name it in \
         XPTI_FRAMEWORK_DISPATCHER, or unset URSCOPE_ENTRY"
    )]
    NoDispatcher,
    /// The private directory cannot be created.
    #[error("no private directory can be created in {}: {source}; set TMPDIR to a directory that only you can write to", path.display())]
    TemporaryInstall {
        /// The parent directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The directory for the traces cannot be created or written.
    #[error("the directory for the traces, {}, cannot be used: {source}; name another one with --dir", path.display())]
    Traces {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of the report cannot be written.
    #[error("the report cannot be written to {}: {source}; name another file with --report", path.display())]
    Report {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The suppressions or the baseline cannot be read.
    #[error(transparent)]
    Exemption(#[from] ExemptionError),
    /// The file of an additional report cannot be written.
    #[error(transparent)]
    Output(#[from] Unwritable),
    /// Options for the page are given without `--view`.
    #[error("--port, --no-open, --perfetto and --perfetto-ui have no effect without --view; add --view")]
    NoView,
    /// The run cannot be shown.
    #[error(transparent)]
    Window(#[from] NoWindow),
    /// The system does not let urscope receive signals or wait for the descendants of the program.
    #[error("the system does not let urscope {what}: {source}")]
    Watch {
        /// The operation that failed, as part of the message.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused to start the program.
    #[error("the program cannot be started: {0}")]
    Start(io::Error),
}

impl RunError {
    /// The exit code: that of a shell for an error of the program, 2 for an error of urscope.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Start(_) => 126,
            _ => 2,
        }
    }

    /// Adds the name of the program to an error of starting it.
    pub(crate) fn about(self, program: &OsStr) -> Self {
        let Self::Start(source) = self else { return self };
        let program = program.to_string_lossy().into_owned();
        let why = match source.kind() {
            io::ErrorKind::NotFound => "it exists, but its interpreter or dynamic loader does not".to_owned(),
            _ => source.to_string(),
        };
        NoProgram::NotExecutable { program, why }.into()
    }
}
