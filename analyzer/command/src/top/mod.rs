//! `urscope top`: how a run stands, in a terminal, while it goes on.
//!
//! `watch` holds the hearings in a thread of its own, `rows` makes lines of what they say, `dashboard` knows what is looked at and
//! what the keys do, `draw` puts it on the screen, and `screen` owns the terminal. Where there is no terminal, `once` writes the
//! same lines one time. Nothing is judged or counted here: every number is one that the library answers.

mod dashboard;
mod draw;
mod once;
mod rows;
mod screen;
mod worker;

use std::{env, io, io::IsTerminal as _, path::PathBuf, process::ExitCode};

pub(crate) use once::show as show_once;
use urscope_analyzer::Options;

use crate::output::wants_color;

/// Shows the run in the terminal until a key ends it.
pub(crate) fn watch(paths: &[PathBuf], options: &Options) -> ExitCode {
    screen::show(&title(paths), paths, options, wants_color(&io::stdout()))
}

/// Whether there is a terminal to draw on and to read keys from.
pub(crate) fn is_screen() -> bool {
    let name = env::var("TERM").unwrap_or_default();
    io::stdout().is_terminal() && io::stdin().is_terminal() && !matches!(name.as_str(), "" | "dumb")
}

fn title(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    urscope_analyzer::plain::plain(&names.join(" "))
}

#[cfg(test)]
mod tests;
