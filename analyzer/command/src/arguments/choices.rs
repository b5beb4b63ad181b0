//! The values that options take.

use clap::ValueEnum;
use urscope_rules::Severity;

/// The Level Zero device of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Device {
    /// What this machine has.
    #[default]
    Native,
    /// The software device of urscope.
    Software,
}

/// The form of an answer, or of what the doctor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object.
    Json,
}

/// The form of a report of the judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object (docs/report.schema.json).
    Json,
    /// For code scanning and editors: SARIF 2.1.0.
    Sarif,
    /// For servers that know tests: JUnit XML, a case per rule and process.
    Junit,
    /// For browsers: one page that needs nothing else.
    Html,
    /// For the log of GitHub Actions: an annotation per finding.
    Github,
}

/// From which severity on a run fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// What the specification forbids.
    Error,
    /// Also resources that are lost.
    #[default]
    Warning,
    /// Everything that is worth a word.
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
    fn every_severity_can_be_asked_for_by_its_name() {
        for severity in Severity::ALL {
            assert_eq!(Severity::from(FailOn::from_str(severity.name(), false).unwrap()), severity);
        }
    }
}
