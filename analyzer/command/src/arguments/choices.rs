//! The possible values of options.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use urscope_analyzer::questions::By;
use urscope_rules::Severity;

/// The device of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The GPU of this machine.
    #[default]
    Native,
    /// The software device of urscope, for programs of SYCL and of Level Zero.
    Software,
    /// The software device of urscope, for programs of the CUDA driver. It runs no kernels, and the CUDA runtime does
    /// not start on it.
    SoftwareCuda,
}

/// A possible value of an option: its name, its help, and what it stands for.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

/// Parses one of these values.
pub(crate) fn one_of<T: Copy + Send + Sync>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|given| {
        let chosen = choices.iter().find(|(name, ..)| *name == given);
        chosen.map(|(.., value)| *value).ok_or("no such value")
    })
}

/// What an answer is divided by.
pub(crate) const DIVISIONS: [Choice<By>; 3] = [
    ("site", "The function of the program that made the call", By::Site),
    ("rank", "The rank in an MPI job", By::Rank),
    ("process", "The process", By::Process),
];

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The format of an answer or of the doctor's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object.
    Json,
}

/// The format of a rule's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// For a terminal: wrapped, with the wrong code beside the fixed one if there is room.
    Text,
    /// Markdown.
    Markdown,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object.
    Json,
    /// For code scanning and editors: SARIF 2.1.0.
    Sarif,
    /// For CI servers that show test results: JUnit XML, one case per rule and process.
    Junit,
    /// For browsers: one self-contained page.
    Html,
    /// For the log of GitHub Actions: one annotation per finding.
    Github,
}

/// A format of files: which extensions their names may have.
pub(crate) trait FileFormat: ValueEnum + Copy + PartialEq {
    /// The extensions, the usual one first.
    fn extensions(self) -> &'static [&'static str];
}

impl FileFormat for Format {
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Text | Self::Github => &["txt", "log"],
            Self::Json => &["json"],
            Self::Sarif => &["sarif", "json"],
            Self::Junit => &["xml"],
            Self::Html => &["html", "htm"],
        }
    }
}

impl FileFormat for PlainFormat {
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["txt", "log"],
            Self::Json => &["json"],
        }
    }
}

/// The lowest severity that makes a run fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Only what the specification forbids.
    Error,
    /// Also resources that are never released.
    #[default]
    Warning,
    /// All findings.
    Note,
    /// No finding.
    Never,
}

impl FailOn {
    /// The severity; `None` if no finding makes a run fail.
    pub(crate) const fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Note => Some(Severity::Note),
            Self::Never => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_severity_can_be_selected_by_its_name() {
        for severity in Severity::ALL {
            assert_eq!(FailOn::from_str(severity.name(), false).unwrap().severity(), Some(severity));
        }
    }
}
