//! One line of the doctor's report: what was checked, what was found, and what to do.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use urscope_analyzer::plain::plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ok,
    /// It works, but with a limitation.
    Warning,
    Problem,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    const fn color(self) -> &'static str {
        match self {
            Self::Ok => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Problem => "\x1b[31m",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) state: State,
    pub(crate) check: &'static str,
    pub(crate) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
    /// The libraries that must be loadable for the line to be true, in the order in which a program loads them.
    #[serde(skip)]
    pub(crate) libraries: Vec<PathBuf>,
}

impl Line {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { state: State::Ok, check, found: found.into(), advice: None, libraries: Vec::new() }
    }

    pub(crate) fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Warning, advice: Some(advice.into()), ..Self::ok(check, found) }
    }

    pub(crate) fn problem(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Problem, ..Self::warning(check, found, advice) }
    }

    /// Adds a hint to a line, mostly to one without a problem.
    pub(crate) fn with(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// Names the libraries that the line is about.
    pub(crate) fn with_libraries<P: Into<PathBuf>>(self, libraries: impl IntoIterator<Item = P>) -> Self {
        Self { libraries: libraries.into_iter().map(Into::into).collect(), ..self }
    }

    /// This line, or a problem in its place where `failure` says that one of its libraries cannot be loaded, and why.
    pub(crate) fn loaded(self, failure: impl Fn(&[PathBuf]) -> Option<String>) -> Self {
        let failure =
            (self.state != State::Problem && !self.libraries.is_empty()).then(|| failure(&self.libraries)).flatten();
        match failure {
            Some(why) => Self::problem(
                self.check,
                format!("{why} ({})", self.found),
                "install the package that the library belongs to again; what it needs must be beside it or in LD_LIBRARY_PATH",
            ),
            None => self,
        }
    }

    pub(crate) fn write(&self, out: &mut impl Write, color: bool) -> io::Result<()> {
        let (on, off) = if color { (self.state.color(), "\x1b[0m") } else { ("", "") };
        writeln!(out, "{on}{:<8}{off} {:<12} {}", self.state.name(), self.check, plain(&self.found))?;
        match &self.advice {
            Some(advice) => writeln!(out, "{:22}-> {}", "", plain(advice)),
            None => Ok(()),
        }
    }
}
