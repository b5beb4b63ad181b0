//! `urscope explain`: the page of a rule, or the list of all.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use urscope_analyzer::explain;

use super::{ExplainArguments, complain};

/// Says it on standard output; 2 where there is no such rule.
pub(crate) fn explain(arguments: &ExplainArguments) -> ExitCode {
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
