//! `urscope env`: lists the environment variables and their present values, or prints what a job script puts into them.

use std::io::{self, BufWriter, Write as _};
use std::{env, error::Error, path::PathBuf, process::ExitCode};

use clap::Args;
use serde::Serialize;
use urscope_analyzer::{plain::plain, report};

use crate::parts::{self, KNOBS, OWN_VARIABLES};
use crate::run::unfit_for_preloading;
use crate::{arguments::PlainFormat, output::written};

/// List all environment variables, with their defaults and present values.
///
/// They are those of urscope and of what it preloads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope env\n  \
        URSCOPE_FORMAT=chrome urscope env --format json | jq '.[] | select(.value)'\n  \
        srun env LD_PRELOAD=$(urscope env --preload) URSCOPE_DIR=/tmp/traces ./app\n  \
        PYTHONPATH=$(urscope env --python) python3 exchange.py\n\n\
        Exit codes: 0 listed or printed, 2 not.")]
pub(crate) struct EnvArguments {
    /// The format of the list.
    #[arg(long, value_enum, default_value_t)]
    format: PlainFormat,

    /// Print only the path of the library that `urscope run` preloads, for LD_PRELOAD.
    #[arg(long, conflicts_with_all = ["python", "format"])]
    preload: bool,

    /// Print only the folder of the Python package, for PYTHONPATH. A wheel needs none.
    #[arg(long, conflicts_with = "format")]
    python: bool,
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

/// What a job script puts into LD_PRELOAD.
fn preload() -> Result<PathBuf, String> {
    let library = parts::library().map_err(|missing| missing.to_string())?;
    if unfit_for_preloading(&library) {
        let library = library.display();
        return Err(format!(
            "{library} cannot be in LD_PRELOAD, which spaces and colons divide; use `urscope run`, or a link to the library at another path"
        ));
    }
    Ok(library)
}

fn python() -> Result<PathBuf, String> {
    parts::python().ok_or_else(|| {
        "the Python package is not beside this command; with a wheel, the interpreter that it is installed for finds it".into()
    })
}

pub(crate) fn list(arguments: &EnvArguments) -> Result<ExitCode, Box<dyn Error>> {
    if arguments.preload || arguments.python {
        let path = if arguments.preload { preload() } else { python() }?;
        written(writeln!(io::stdout(), "{}", path.display()), "standard output cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    }
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
