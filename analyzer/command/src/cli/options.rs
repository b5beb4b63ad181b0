//! The values that several subcommands take.

use std::path::Path;

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

/// The form of what is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A timeline as a Chrome trace, which Perfetto and others read.
    Chrome,
    /// A timeline in Perfetto's own form, exact to the last bit.
    Perfetto,
    /// Tables, for DuckDB, Spark, Polars and whatever else reads Parquet.
    Parquet,
    /// The same tables as lines of JSON.
    Jsonl,
}

impl ExportFormat {
    /// The form that a file's name asks for.
    pub(crate) fn of(path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let native = name.ends_with(".pftrace") || name.ends_with(".perfetto-trace");
        if native { Self::Perfetto } else { Self::Chrome }
    }
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
    fn the_name_of_a_file_says_its_form() {
        for name in ["run.pftrace", "a/run.pftrace.gz", "run.perfetto-trace"] {
            assert_eq!(ExportFormat::of(Path::new(name)), ExportFormat::Perfetto, "{name}");
        }
        for name in ["run.json", "run.json.gz", "a.pftrace/run", "", "pftrace"] {
            assert_eq!(ExportFormat::of(Path::new(name)), ExportFormat::Chrome, "{name}");
        }
    }

    #[test]
    fn every_severity_can_be_asked_for_by_its_name() {
        for severity in Severity::ALL {
            assert_eq!(Severity::from(FailOn::from_str(severity.name(), false).unwrap()), severity);
        }
    }
}
