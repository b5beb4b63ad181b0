//! The files that reports are written to. They are opened before anything else is done, so that a long run is not lost
//! because a file cannot be written.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use urscope_analyzer::{ExemptionError, Exemptions, Judgement, analysis::exemptions, files, report::Paint};
use urscope_schema::placeholders;

use super::{detailed, show};
use crate::arguments::{FileFormat, Format, VerdictArguments};

/// An additional report or answer, given as `FORMAT=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output<F> {
    pub(crate) format: F,
    /// The file; `None` is standard output.
    pub(crate) file: Option<PathBuf>,
}

impl<F: FileFormat> FromStr for Output<F> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').ok_or("expected FORMAT=FILE, as in json=report.json")?;
        let format = F::from_str(format, false).map_err(|_| {
            let known: Vec<_> = F::value_variants().iter().map(|format| name(*format)).collect();
            format!("{format:?} is not a format; expected one of {}", known.join(", "))
        })?;
        match file {
            "" => Err("expected a file name after the =, or - for standard output".into()),
            "-" => Ok(Self { format, file: None }),
            file => {
                check_extension(format, Path::new(file))?;
                Ok(Self { format, file: Some(file.into()) })
            }
        }
    }
}

/// The name of a format.
fn name<F: FileFormat>(format: F) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Refuses a file name whose extension is that of another format, or of none. A name without an extension is one for each format.
fn check_extension<F: FileFormat>(format: F, file: &Path) -> Result<(), String> {
    let Some(extension) = file.extension().map(|extension| extension.to_string_lossy().to_lowercase()) else {
        return Ok(());
    };
    let has = |format: &F| format.extensions().contains(&extension.as_str());
    if has(&format) {
        return Ok(());
    }
    let usual = format.extensions().first().copied().unwrap_or_default();
    let others: Vec<_> = F::value_variants().iter().filter(|format| has(format)).map(|format| name(*format)).collect();
    let what = if others.is_empty() { "of no format".to_owned() } else { format!("that of {}", others.join(" and ")) };
    Err(format!("the extension .{extension} is {what}, and not of {}; expected .{usual}", name(format)))
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
        let file = files::create(path).map_err(|source| Unwritable { path: path.to_owned(), source })?;
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

impl Unwritable {
    /// The error that two outputs are standard output.
    fn twice() -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "two outputs are standard output");
        Self { path: "-".into(), source }
    }
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

/// The opened files of some outputs, and the format of standard output if one of them is that.
pub(crate) type Opened<F> = (Vec<(F, OutputFile)>, Option<F>);

/// Creates the files of outputs. Their previous content is lost.
pub(crate) fn opened<F: FileFormat>(outputs: &[Output<F>]) -> Result<Opened<F>, Unwritable> {
    let (mut files, mut stdout) = (Vec::new(), None);
    for Output { format, file } in outputs {
        match file {
            Some(file) => files.push((*format, OutputFile::open(file)?)),
            None if stdout.is_some() => return Err(Unwritable::twice()),
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
    /// How text looks.
    paint: Paint,
    suppressions: Option<OutputFile>,
}

impl Outputs {
    /// Creates the files. Their previous content is lost, so all input files have to be read before.
    pub(crate) fn open(arguments: &VerdictArguments) -> Result<Self, Unwritable> {
        let (reports, stdout) = opened(&arguments.output)?;
        let suppressions = arguments.write_suppressions.as_deref().map(OutputFile::open).transpose()?;
        Ok(Self { reports, stdout, paint: detailed(false.into(), arguments), suppressions })
    }

    /// Writes the files.
    pub(crate) fn write(self, judgement: &Judgement) -> Result<(), Unwritable> {
        for (format, file) in self.reports {
            file.fill(|out| show(judgement, format, out, self.paint))?;
        }
        let suppressions =
            self.suppressions.map(|file| file.fill(|out| out.write_all(exemptions::suppressing(judgement).as_bytes())));
        suppressions.unwrap_or(Ok(()))
    }
}

/// Reads the suppressions and the baseline.
pub(crate) fn exemptions(arguments: &VerdictArguments) -> Result<Exemptions, ExemptionError> {
    let suppressions = match (&arguments.suppressions, &arguments.known) {
        (Some(file), _) => exemptions::Suppressions::read(file)?,
        (None, known) => known.clone().unwrap_or_default(),
    };
    let baseline = arguments.baseline.as_deref().map(exemptions::Baseline::read).transpose()?;
    Ok(Exemptions { suppressions, baseline })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_a_format_and_a_file() {
        let parsed = str::parse::<Output<Format>>;
        assert_eq!(parsed("sarif=a=b.sarif"), Ok(Output { format: Format::Sarif, file: Some("a=b.sarif".into()) }));
        assert_eq!(parsed("json=-"), Ok(Output { format: Format::Json, file: None }));
        assert!(parsed("report.sarif").unwrap_err().contains("FORMAT=FILE"));
        assert!(parsed("xml=a").unwrap_err().contains("junit"));
        assert!(parsed("html=").is_err());
    }

    #[test]
    fn an_extension_of_another_format_or_of_none_is_refused() {
        let parsed = str::parse::<Output<Format>>;
        for good in ["sarif=a.json", "junit=a.XML", "text=a.b/c", "json=report", "html=.hidden", "github=log.txt"] {
            assert!(parsed(good).is_ok(), "{good}: {:?}", parsed(good));
        }
        for (wrong, why) in [
            ("sarif=report.html", "the extension .html is that of html, and not of sarif; expected .sarif"),
            ("json=report.txt", "the extension .txt is that of text and github, and not of json; expected .json"),
            ("json=report.json.gz", "the extension .gz is of no format, and not of json; expected .json"),
        ] {
            assert_eq!(parsed(wrong), Err(why.to_owned()));
        }
    }
}
