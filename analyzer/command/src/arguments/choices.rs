//! The possible values of options.

use clap::ValueEnum;
use urscope_rules::Severity;

/// The Level Zero device of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// The GPU of this machine.
    #[default]
    Native,
    /// The software device of urscope.
    Software,
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

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object (docs/report.schema.json).
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
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::Error => Self::Error,
            FailOn::Warning => Self::Warning,
            FailOn::Note => Self::Note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_severity_can_be_selected_by_its_name() {
        for severity in Severity::ALL {
            assert_eq!(Severity::from(FailOn::from_str(severity.name(), false).unwrap()), severity);
        }
    }
}
