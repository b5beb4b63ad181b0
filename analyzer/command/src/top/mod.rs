//! `urscope top`: shows the current state of a run in a terminal.
//!
//! `worker` follows the run in a thread of its own, `rows` formats its snapshots as lines, `dashboard` holds the state
//! of the screen and handles keys, `draw` draws it, and `screen` owns the terminal. Without a terminal, `once` writes
//! the same lines once. This module must not compute results: every number comes from the library.

mod dashboard;
mod draw;
mod once;
mod rows;
mod screen;
mod worker;

use std::{env, error::Error, io, io::IsTerminal as _, path::PathBuf, process::ExitCode};

pub(crate) use once::show as show_once;
use urscope_analyzer::Options;

use crate::output::wants_color;

/// Shows the run in the terminal until a key ends it.
pub(crate) fn watch(paths: &[PathBuf], options: &Options) -> Result<ExitCode, Box<dyn Error>> {
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
