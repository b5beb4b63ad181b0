//! `urscope explain`: the page of a rule, or the list of all.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Args;
use urscope_analyzer::explain;

use crate::output::complain;

/// Say what a rule is about: what it does, why that is bad, a bad and a good story, what to do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope explain                     all rules, and how bad what they find is\n  \
        urscope explain freed-while-open\n\n\
        Exit codes: 0 said, 2 there is no such rule.")]
pub(crate) struct Arguments {
    /// The name of the rule; without one, all are listed.
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

/// Says it on standard output; 2 where there is no such rule.
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
