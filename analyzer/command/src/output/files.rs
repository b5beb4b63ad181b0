//! The files that reports are written to. They are opened before anything else is done, so that a long run is not lost
//! because a file cannot be written.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::{fmt::Display, fs::File};

use urscope_analyzer::{ExemptionError, Exemptions, analysis::exemptions, files, report::Paint};
use urscope_schema::host::{launcher, placeholders};

use super::{Shown, detailed, show};
use crate::arguments::{FileFormat, Format, Output, VerdictArguments};

/// A file that is open for writing.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Creates the file. Its previous content is lost.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let file = files::create(path).map_err(|error| unwritable(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn fill(self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), String> {
        let mut out = BufWriter::new(self.file);
        write(&mut out).and_then(|()| out.flush()).map_err(|error| unwritable(&self.path, &error))
    }
}

/// Replaces the placeholders in a path: the host, the process and the rank of this process.
pub(crate) fn named_here(path: &Path) -> PathBuf {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    placeholders::fill(path, &host, std::process::id(), launcher::rank(|name| std::env::var_os(name)))
}

fn unwritable(path: &Path, why: &dyn Display) -> String {
    format!("{} cannot be written: {why}; name another file", path.display())
}

/// The opened files of some outputs, and the format of standard output if one of them is that.
pub(crate) type Opened<F> = (Vec<(F, OutputFile)>, Option<F>);

/// Creates the files of outputs. Their previous content is lost.
pub(crate) fn opened<F: FileFormat>(outputs: &[Output<F>]) -> Result<Opened<F>, String> {
    let mut files = Vec::new();
    let mut stdout = None;
    for Output { format, file } in outputs {
        match file {
            Some(file) => files.push((*format, OutputFile::open(file)?)),
            None if stdout.is_some() => return Err(unwritable(Path::new("-"), &"two outputs are standard output")),
            None => stdout = Some(*format),
        }
    }
    Ok((files, stdout))
}

/// The output files of a verdict.
#[derive(Debug)]
pub(crate) struct Outputs {
    reports: Vec<(Format, OutputFile)>,
    /// The format of standard output, if it is asked for.
    pub(crate) stdout: Option<Format>,
    paint: Paint,
    suppressions: Option<OutputFile>,
}

impl Outputs {
    /// Creates the files. Their previous content is lost, so all input files have to be read before.
    pub(crate) fn open(arguments: &VerdictArguments) -> Result<Self, String> {
        let (reports, stdout) = opened(&arguments.output)?;
        let suppressions = arguments.write_suppressions.as_deref().map(OutputFile::open).transpose()?;
        Ok(Self { reports, stdout, paint: detailed(false.into(), arguments), suppressions })
    }

    pub(crate) fn write(self, shown: Shown<'_>) -> Result<(), String> {
        for (format, file) in self.reports {
            file.fill(|out| show(shown, format, out, self.paint))?;
        }
        self.suppressions
            .map_or(Ok(()), |file| file.fill(|out| out.write_all(exemptions::suppressing(shown.judgement).as_bytes())))
    }
}

pub(crate) fn exemptions(arguments: &VerdictArguments) -> Result<Exemptions, ExemptionError> {
    let suppressions = match (&arguments.suppressions, &arguments.known) {
        (Some(file), _) => exemptions::Suppressions::read(file)?,
        (None, known) => known.clone().unwrap_or_default(),
    };
    let baseline = arguments.baseline.as_deref().map(exemptions::Baseline::read).transpose()?;
    Ok(Exemptions { suppressions, baseline })
}
