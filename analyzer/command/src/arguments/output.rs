//! Additional reports and answers, as they are given on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::FileFormat;

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

/// Refuses a file name whose extension is that of another format, or of none. A name without an extension is one for
/// each format.
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

#[cfg(test)]
mod tests {
    use super::{super::Format, *};

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
