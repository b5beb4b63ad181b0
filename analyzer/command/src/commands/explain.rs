//! `urscope explain`: prints the page of a rule, or the list of all rules.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Args;
use urscope_analyzer::explain;

use crate::output::complain;

/// Explain a rule: what it finds, why that is a problem, an example of bad and of good code, and what to do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope explain                     all rules with their severity\n  \
        urscope explain freed-while-open\n\n\
        Exit codes: 0 explained, 2 unknown rule.")]
pub(crate) struct Arguments {
    /// The name of the rule. Without it, all rules are listed.
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

/// Prints the page or the list. The exit code is 2 if there is no such rule.
pub(crate) fn explain(arguments: &Arguments) -> ExitCode {
    let text = match &arguments.rule {
        None => explain::list(),
        Some(name) => match explain::page(name) {
            Ok(page) => page,
            Err(unknown) => {
                complain(unknown);
                return 2.into();
            }
        },
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("standard output cannot be written: {error}"));
            2.into()
        }
        _ => ExitCode::SUCCESS,
    }
}
