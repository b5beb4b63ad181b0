//! `urscope env`: lists the environment variables and their present values.

use std::io::{self, BufWriter, Write as _};
use std::{env, error::Error, process::ExitCode};

use clap::Args;
use serde::Serialize;
use urscope_analyzer::{plain::plain, report};

use crate::parts::{KNOBS, OWN_VARIABLES};
use crate::{arguments::PlainFormat, output::written};

/// List all environment variables of urscope and of what it preloads, with their defaults and their present values.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope env\n  \
        URSCOPE_FORMAT=chrome urscope env --format json | jq '.[] | select(.value)'\n\n\
        Exit codes: 0 listed, 2 not listed.")]
pub(crate) struct EnvArguments {
    /// The format of the list.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Variable {
    name: &'static str,
    /// Its value; absent if it is not set.
    value: Option<String>,
    default: &'static str,
    /// What it does.
    meaning: &'static str,
}

/// All variables: those of the library, from its generated documentation, then those of the command.
fn variables(value: impl Fn(&str) -> Option<String>) -> Vec<Variable> {
    let rows = KNOBS.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches(" |").splitn(4, " | ");
        let name = cells.next()?.trim_end_matches('`');
        let default = cells.next()?.trim_matches('`');
        Some((name, if default == "(empty)" { "" } else { default }, cells.nth(1)?))
    });
    let own = OWN_VARIABLES.iter().map(|(name, meaning)| (*name, "", *meaning));
    rows.chain(own).map(|(name, default, meaning)| Variable { name, value: value(name), default, meaning }).collect()
}

pub(crate) fn list(arguments: &EnvArguments) -> Result<ExitCode, Box<dyn Error>> {
    let all = variables(|name| env::var_os(name).map(|value| plain(&value.to_string_lossy())));
    let stdout = io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let listed = match arguments.format {
        PlainFormat::Json => report::json(&all, &mut out),
        PlainFormat::Text => all.iter().try_for_each(|variable| {
            let Variable { name, value, default, meaning } = variable;
            let now = match (value, *default) {
                (Some(value), _) => format!("={value}"),
                (None, "") => " is not set".to_owned(),
                (None, default) => format!(" is not set (default {default})"),
            };
            writeln!(out, "{name}{now}\n    {}", report::wrapped(meaning, "    ", report::WIDTH))
        }),
    };
    written(listed.and_then(|()| out.flush()), "the list cannot be written to standard output")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_its_default_its_meaning_and_its_value() {
        let all = variables(|name| (name == "URSCOPE_DIR").then(|| "/t".to_owned()));
        let of = |name: &str| all.iter().find(|variable| variable.name == name).unwrap();
        assert_eq!((of("URSCOPE_DIR").value.as_deref(), of("URSCOPE_DIR").default), (Some("/t"), "."));
        assert_eq!((of("URSCOPE_RUN").value.as_deref(), of("URSCOPE_RUN").default), (None, ""));
        assert!(
            of("URSCOPE_FORMAT").meaning.starts_with("The form of the trace: `chrome`"),
            "{:?}",
            of("URSCOPE_FORMAT")
        );
        assert!(all.iter().any(|variable| variable.name == "NO_COLOR") && all.len() > 12, "{all:?}");
        assert!(all.iter().all(|variable| !variable.meaning.is_empty() && !variable.name.contains('`')), "{all:?}");
    }
}
