//! `urscope view`: shows a run in a browser until Ctrl-C.

use std::io::{self, Write as _};
use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Options, analysis::Wrappers};

use crate::input::{NOTHING, newest, refuse_a_parent};
use crate::{
    arguments::{SourceArguments, WindowArguments},
    config,
    output::complain,
    run::{TemporaryInstall, until_interrupted},
    view::Subject,
    window::Window,
};

/// Show a run in a browser.
///
/// The page has the verdict, the findings, which processes share what, the history of each handle, and the timeline in
/// Perfetto.
///
/// The page is served on the loopback address only, and only under the printed address, which contains a random token.
/// Nothing leaves this machine. The page is updated when the run grows, at most once a second, using at most 20 % of
/// one CPU.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope view urscope-traces/app-1\n  \
        urscope view                                 the newest run in urscope-traces\n  \
        urscope view --perfetto urscope-traces/app-1\n  \
        urscope view --port 8080 --no-open           and, on your own machine: ssh -L 8080:127.0.0.1:8080 HOST\n\n\
        Exit codes: 0 ended by Ctrl-C, 2 the page cannot be served.\n\n\
        Environment: BROWSER is a list of browsers, separated by colons. No browser is opened without DISPLAY or WAYLAND_DISPLAY.")]
pub(crate) struct ViewArguments {
    #[command(flatten)]
    window: WindowArguments,

    #[command(flatten)]
    source: SourceArguments,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine. May be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// A function of the program that is no call site, besides those that urscope.toml names. May be given several
    /// times.
    #[arg(long, value_name = "FUNCTION")]
    wrapper: Vec<String>,

    /// Trace files, or directories with urscope-*.json or *.fxt files in them. [default: $URSCOPE_DIR, else the newest
    /// directory in urscope-traces]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
}

/// Serves the page until Ctrl-C.
pub(crate) fn view(arguments: &ViewArguments) -> Result<ExitCode, Box<dyn Error>> {
    let paths = if arguments.paths.is_empty() { vec![newest().ok_or(NOTHING)?] } else { arguments.paths.clone() };
    if let Some((path, error)) = paths.iter().find_map(|path| Some((path, path.metadata().err()?))) {
        let path = path.display();
        return Err(format!("{path} cannot be read: {error}; name a directory of traces, or trace files").into());
    }
    paths.iter().try_for_each(|path| refuse_a_parent(path))?;
    let named = config::wrappers()?;
    let wrappers = Wrappers::new(arguments.wrapper.iter().chain(&named).map(String::as_str));
    let options = Options { symbols: arguments.symbols.clone(), wrappers, ..Options::default() };
    let window = Window::open(&arguments.window, arguments.source.sources(), Subject::named(paths, options))?;
    // A reader of a pipe waits for the address.
    if writeln!(io::stdout(), "{}", window.url()).and_then(|()| io::stdout().flush()).is_err() {
        complain(window.url());
    }
    let mut private = TemporaryInstall::default();
    window.show(|address| private.page(address));
    until_interrupted(|| complain("the run is shown at this address until Ctrl-C"));
    Ok(ExitCode::SUCCESS)
}
