//! Why a program was not run.

use std::{ffi::OsStr, io, path::PathBuf};

use urscope_analyzer::ExemptionError;

use crate::{output::Unwritable, parts::Missing, window::NoWindow};

/// What keeps `urscope run` from running a program; each says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Nothing stands after the options.
    #[error("no program is given; expected urscope run [OPTIONS] -- PROGRAM [ARGUMENTS]")]
    NoProgram,
    /// The shell's 127.
    #[error("{program}: there is no such program {place}; give its path, or a name that stands in PATH")]
    NotFound {
        /// As it was given.
        program: String,
        /// Where it was looked for.
        place: &'static str,
    },
    /// The shell's 126.
    #[error("{program} cannot be executed: {why}")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// What is wrong with it.
        why: String,
    },
    /// A part of ours is not where it should be.
    #[error(transparent)]
    Part(#[from] Missing),
    /// The private directory cannot be made.
    #[error("no private directory can be made in {}: {source}; set TMPDIR to a directory that can be written", path.display())]
    TemporaryInstall {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nowhere to write traces to.
    #[error("the directory for the traces, {}, cannot be used: {source}; name another one with --dir", path.display())]
    Traces {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nowhere to write the report to.
    #[error("the report cannot be written to {}: {source}; name another file with --report", path.display())]
    Report {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What does not count cannot be read.
    #[error(transparent)]
    Exemption(#[from] ExemptionError),
    /// There is nowhere to write further reports to.
    #[error(transparent)]
    Output(#[from] Unwritable),
    /// What is asked for is of no use.
    #[error("--port, --no-open, --perfetto and --perfetto-ui say how the run is shown; ask for that with --view")]
    NoView,
    /// The run cannot be shown.
    #[error(transparent)]
    Window(#[from] NoWindow),
    /// The processes below us cannot be watched.
    #[error("the system does not let urscope {what}: {source}")]
    Watch {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to start the program.
    #[error("the program cannot be started: {0}")]
    Start(io::Error),
}

impl RunError {
    /// As shells have it for what concerns the program; 2 for what concerns us.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Start(_) => 126,
            _ => 2,
        }
    }

    /// Says which program the system refused to start, and why.
    pub(crate) fn about(self, program: &OsStr) -> Self {
        let Self::Start(source) = self else { return self };
        let program = program.to_string_lossy().into_owned();
        let why = match source.kind() {
            io::ErrorKind::NotFound => {
                "it is there, but the interpreter or dynamic loader that it asks for is not".to_owned()
            }
            _ => source.to_string(),
        };
        Self::NotExecutable { program, why }
    }
}
