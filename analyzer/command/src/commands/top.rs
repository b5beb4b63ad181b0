//! `urscope top`: shows a run in the terminal while it goes on.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use urscope_analyzer::{Options, Verdict};

use crate::{arguments::PlainFormat, output::complain, run::newest, top};

/// Show a run in this terminal while it goes on: processes, what is shared, calls a second, findings, who holds the most.
///
/// The run is heard again when it has grown, at most once a second and never more than a fifth of the time. Traces that appear
/// later are taken, and a run that has ended is shown with its verdict. Keys: ? tells them, q ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope top                                  the newest run in urscope-traces\n  \
        urscope top /tmp/traces                      begin before the run does, and wait for it\n  \
        urscope top --once urscope-traces/app-1      as it stands now, for a log\n\n\
        Where there is no terminal to draw on, --once is what it does.\n\n\
        Exit codes: 0 it was ended by a key or told once, 2 it could not be shown.")]
pub(crate) struct Arguments {
    /// Write the run as it stands now to standard output, once.
    #[arg(long)]
    once: bool,

    /// The form of what is written once: json has the answers of check, stats and holders in one object.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// A directory with copies of the programs and libraries that ran, for traces of another machine; may be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// Trace files, or directories with urscope-*.json files in them. [default: $URSCOPE_DIR, else the newest directory in urscope-traces]
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
}

/// Shows the run until a key ends it, or once.
pub(crate) fn top(arguments: &Arguments) -> ExitCode {
    let paths = if arguments.paths.is_empty() { newest().into_iter().collect() } else { arguments.paths.clone() };
    if paths.is_empty() {
        complain("no traces were named, and there are none in urscope-traces; name a directory, it need not exist yet");
        return Verdict::NotJudged.exit_code().into();
    }
    let options = Options { symbols: arguments.symbols.clone(), ..Options::default() };
    let once = arguments.once || arguments.format == PlainFormat::Json;
    if !once && top::is_screen() {
        return top::watch(&paths, &options);
    }
    if !once {
        complain("this is no terminal that can be drawn on, so the run is shown as it stands now (as with --once)");
    }
    top::show_once(&paths, &options, arguments.format)
}
