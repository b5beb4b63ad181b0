//! `urscope top`: shows a run in the terminal while it runs.

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::Options;

use crate::input::{newest, refuse_a_parent};
use crate::{arguments::PlainFormat, output::complain, top};

/// Show a run in this terminal while it runs.
///
/// It shows the verdict, findings, processes, calls per second, and the largest holders.
///
/// The display is updated when the run grows, at most once a second, using at most 20 % of one CPU. Traces that appear
/// later are included. A run that has ended is shown with its verdict. Press ? for the keys, q to quit.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope top                                  the newest run in urscope-traces\n  \
        urscope top /tmp/traces                      start before the run, and wait for it\n  \
        urscope top --once urscope-traces/app-1      the current state, for a log\n\n\
        Without a suitable terminal, --once is implied.\n\n\
        Exit codes: 0 ended by a key, or written once; 2 the run cannot be shown.")]
pub(crate) struct TopArguments {
    /// Write the current state of the run to standard output once, and end.
    #[arg(long)]
    once: bool,

    /// The format with --once; json is the output of check, stats and holders in one object, and implies --once.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine. May be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// Trace files, or directories with urscope-*.json or *.fxt files in them. [default: $URSCOPE_DIR, else the newest
    /// directory in urscope-traces]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
}

/// Shows the run until a key ends it, or writes it once.
pub(crate) fn top(arguments: &TopArguments) -> Result<ExitCode, Box<dyn Error>> {
    let paths = if arguments.paths.is_empty() { newest().into_iter().collect() } else { arguments.paths.clone() };
    if paths.is_empty() {
        let none =
            "no traces are given, and there are none in urscope-traces; name a directory, which need not exist yet";
        return Err(none.into());
    }
    paths.iter().try_for_each(|path| refuse_a_parent(path))?;
    let options = Options { symbols: arguments.symbols.clone(), command_lines: true, ..Options::default() };
    let once = arguments.once || arguments.format == PlainFormat::Json;
    if !once && top::is_screen() {
        return top::watch(&paths, &options);
    }
    if !once {
        complain("this is not a suitable terminal, so the current state is written once (as with --once)");
    }
    top::show_once(&paths, &options, arguments.format)
}
