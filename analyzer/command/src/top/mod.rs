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

use urscope_analyzer::{Options, Verdict};

use crate::cli::{PlainFormat, TopArguments, complain, newest, wants_color};

/// Shows the run until a key ends it, or once.
pub(crate) fn top(arguments: &TopArguments) -> ExitCode {
    let paths = if arguments.paths.is_empty() { newest().into_iter().collect() } else { arguments.paths.clone() };
    if paths.is_empty() {
        complain("no traces were named, and there are none in urscope-traces; name a directory, it need not exist yet");
        return Verdict::NotJudged.exit_code().into();
    }
    let options = Options { symbols: arguments.symbols.clone(), ..Options::default() };
    let once = arguments.once || arguments.format == PlainFormat::Json;
    if !once && is_screen() {
        return screen::show(&title(&paths), &paths, &options, wants_color(&io::stdout()));
    }
    if !once {
        complain("this is no terminal that can be drawn on, so the run is shown as it stands now (as with --once)");
    }
    once::show(&paths, &options, arguments.format)
}

/// Whether there is a terminal to draw on and to read keys from.
fn is_screen() -> bool {
    let name = env::var("TERM").unwrap_or_default();
    io::stdout().is_terminal() && io::stdin().is_terminal() && !matches!(name.as_str(), "" | "dumb")
}

fn title(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    urscope_analyzer::plain::plain(&names.join(" "))
}

#[cfg(test)]
mod tests;
