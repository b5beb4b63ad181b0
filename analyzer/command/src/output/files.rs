//! The files that reports are written to. They are opened before anything else is done, so that a long run is not lost
//! because a file cannot be written.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::ValueEnum as _;
use urscope_analyzer::{ExemptionError, Exemptions, Judgement, analysis::exemptions, report::Paint};
use urscope_schema::placeholders;

use super::show;
use crate::arguments::{Format, VerdictArguments};

/// An additional report, given as `FORMAT=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    format: Format,
    file: PathBuf,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').ok_or("expected FORMAT=FILE, as in sarif=report.sarif")?;
        let format = Format::from_str(format, false).map_err(|_| {
            let known: Vec<_> = Format::value_variants().iter().filter_map(Format::to_possible_value).collect();
            let known: Vec<_> = known.iter().map(clap::builder::PossibleValue::get_name).collect();
            format!("{format:?} is not a format; expected one of {}", known.join(", "))
        })?;
        if file.is_empty() {
            return Err("expected a file name after the =".into());
        }
        Ok(Self { format, file: file.into() })
    }
}

/// A file that is open for writing.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Creates the file. Its previous content is lost.
    pub(crate) fn open(path: &Path) -> Result<Self, Unwritable> {
        let file = File::create(path).map_err(|source| Unwritable { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the content of the file.
    pub(crate) fn fill(self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Unwritable> {
        let mut out = BufWriter::new(self.file);
        let path = self.path;
        write(&mut out).and_then(|()| out.flush()).map_err(|source| Unwritable { path, source })
    }
}

/// Replaces the placeholders in a path: the host, the process and the rank of this process.
pub(crate) fn named_here(path: &Path) -> PathBuf {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    placeholders::fill(path, &host, std::process::id(), placeholders::rank(|name| std::env::var_os(name)))
}

/// The error that a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}; name another file", path.display())]
pub(crate) struct Unwritable {
    /// The path of the file.
    path: PathBuf,
    /// The error of the system.
    source: io::Error,
}

/// The output files of a verdict.
#[derive(Debug)]
pub(crate) struct Outputs {
    reports: Vec<(Format, OutputFile)>,
    /// Whether all occurrences of each finding are listed.
    all: bool,
    suppressions: Option<OutputFile>,
}

impl Outputs {
    /// Creates the files. Their previous content is lost, so all input files have to be read before.
    pub(crate) fn open(arguments: &VerdictArguments) -> Result<Self, Unwritable> {
        let reports = arguments.output.iter().map(|output| Ok((output.format, OutputFile::open(&output.file)?)));
        let reports = reports.collect::<Result<_, Unwritable>>()?;
        let suppressions = arguments.write_suppressions.as_deref().map(OutputFile::open).transpose()?;
        Ok(Self { reports, all: arguments.all, suppressions })
    }

    /// Writes the files.
    pub(crate) fn write(self, judgement: &Judgement) -> Result<(), Unwritable> {
        for (format, file) in self.reports {
            file.fill(|out| show(judgement, format, out, Paint { all: self.all, ..false.into() }))?;
        }
        let suppressions =
            self.suppressions.map(|file| file.fill(|out| out.write_all(exemptions::suppressing(judgement).as_bytes())));
        suppressions.unwrap_or(Ok(()))
    }
}

/// Reads the suppressions and the baseline.
pub(crate) fn exemptions(arguments: &VerdictArguments) -> Result<Exemptions, ExemptionError> {
    let suppressions =
        arguments.suppressions.as_deref().map(exemptions::Suppressions::read).transpose()?.unwrap_or_default();
    let baseline = arguments.baseline.as_deref().map(exemptions::Baseline::read).transpose()?;
    Ok(Exemptions { suppressions, baseline })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_a_format_and_a_file() {
        let output: Output = "sarif=a=b.sarif".parse().unwrap();
        assert_eq!(output, Output { format: Format::Sarif, file: "a=b.sarif".into() });
        assert!("report.sarif".parse::<Output>().unwrap_err().contains("FORMAT=FILE"));
        assert!("xml=a".parse::<Output>().unwrap_err().contains("junit"));
        assert!("html=".parse::<Output>().is_err());
    }
}
