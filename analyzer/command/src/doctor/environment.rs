//! Reports environment variables that change a run.

use std::{env, path::Path};

use super::line::Line;
use crate::parts::{KNOBS, LIBRARY_VARIABLE};

const CHECK: &str = "environment";

/// The variables that are set, and the missing files that they name.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnvironmentFacts {
    variables: Vec<(String, String)>,
    /// The files that are named but do not exist.
    missing: Vec<String>,
}

pub(crate) fn gather() -> EnvironmentFacts {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut variables: Vec<_> = env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    variables.sort();
    let named = variables.iter().filter(|(name, _)| name == "UR_ADAPTERS_FORCE_LOAD");
    let files = named.flat_map(|(_, value)| value.split([',', ';'])).map(|file| file.trim_matches(['"', ' ']));
    let missing = files.filter(|file| file.starts_with('/') && !Path::new(file).exists()).map(Into::into).collect();
    EnvironmentFacts { variables, missing }
}

/// One line for each variable that changes a run, or one line if there is none.
pub(crate) fn lines(facts: &EnvironmentFacts) -> Vec<Line> {
    let mut lines: Vec<Line> = facts
        .variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, value)| line(name, value, &facts.missing))
        .collect();
    if lines.is_empty() {
        lines.push(Line::ok(CHECK, "no variable is set that changes a run"));
    }
    lines
}

fn line(name: &str, value: &str, missing: &[String]) -> Option<Line> {
    let found = format!("{name}={value}");
    let warning = |advice: &str| Some(Line::warning(CHECK, found.clone(), advice));
    let notice = |advice: &str| Some(Line::ok(CHECK, found.clone()).with(advice));
    match name {
        "LD_PRELOAD" if value.contains("liburscope.so") => warning(
            "liburscope.so is already loaded, also into urscope itself; unset it, because `urscope run` sets it",
        ),
        "LD_PRELOAD" => notice("liburscope.so is put before it"),
        "UR_ADAPTERS_FORCE_LOAD" => match missing {
            [] => notice("only these adapters are loaded"),
            _ => Some(Line::problem(
                CHECK,
                found,
                format!(
                    "{} does not exist, so no adapter is loaded: unset or correct the variable",
                    missing.join(", ")
                ),
            )),
        },
        "SYCL_UR_USE_LEVEL_ZERO_V2" | "UR_LOADER_USE_LEVEL_ZERO_V2" => {
            notice("this chooses the adapter: 0 is v1 (no physical-memory and no event IPC), 1 is v2")
        }
        "ONEAPI_DEVICE_SELECTOR" if selects_level_zero(value) => notice("this chooses devices"),
        "ONEAPI_DEVICE_SELECTOR" if value.to_ascii_lowercase().split(';').any(|part| part.starts_with("cuda")) => {
            notice("this chooses GPUs of NVIDIA, and hides Level Zero devices; the software device sets its own")
        }
        "ONEAPI_DEVICE_SELECTOR" => warning("this hides Level Zero devices; the software device sets its own"),
        "ZE_ENABLE_ALT_DRIVERS" => notice("this replaces the Level Zero driver; the software device does not need it"),
        "UR_ENABLE_LAYERS" if value.contains(';') => {
            warning("the runtime does not start with a semicolon in it: separate layers by commas")
        }
        "XPTI_SUBSCRIBERS" => {
            notice("these libraries observe the program by XPTI; where urscope needs XPTI, it is added to them")
        }
        "XPTI_TRACE_ENABLE" | "XPTI_FRAMEWORK_DISPATCHER" => {
            notice("this concerns XPTI, by which calls can be observed")
        }
        "UR_ENABLE_LAYERS" => notice("calls also pass through these layers"),
        LIBRARY_VARIABLE => notice("this library is loaded into programs"),
        _ if name.starts_with("URSCOPE_") && is_knob(name) => notice("`urscope env` says what it does"),
        _ if name.starts_with("URSCOPE_") => warning("urscope has no such variable (`urscope env` lists them)"),
        _ => None,
    }
}

/// Whether a selector such as `level_zero:0;opencl:*`, `*:gpu` or `!cuda:*` includes Level Zero devices.
fn selects_level_zero(selector: &str) -> bool {
    selector.split(';').any(|part| {
        let part = part.to_ascii_lowercase();
        part.starts_with("level_zero") || part.starts_with('*') || part.starts_with('!') && !part.contains("level_zero")
    })
}

fn is_knob(name: &str) -> bool {
    KNOBS.lines().any(|row| row.starts_with(&format!("| `{name}` |")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::line::State;

    fn state(name: &str, value: &str) -> State {
        let facts = EnvironmentFacts { variables: vec![(name.into(), value.into())], missing: Vec::new() };
        let [line] = &lines(&facts)[..] else { panic!("one line") };
        line.state
    }

    #[test]
    fn unrelated_variables_are_ignored() {
        assert_eq!(state("HOME", "/root"), State::Ok);
        let nothing = EnvironmentFacts { variables: vec![("LD_PRELOAD".into(), String::new())], missing: Vec::new() };
        assert_eq!(lines(&nothing)[0].found, "no variable is set that changes a run");
    }

    #[test]
    fn variables_that_change_a_run_are_reported() {
        for (name, value, expected) in [
            ("URSCOPE_DIR", "/tmp", State::Ok),
            ("URSCOPE_QUIET", "1", State::Ok),
            ("URSCOPE_LIBRARY", "/x.so", State::Ok),
            ("URSCOPE_DIRECTORY", "/tmp", State::Warning),
            ("ONEAPI_DEVICE_SELECTOR", "level_zero:*", State::Ok),
            ("ONEAPI_DEVICE_SELECTOR", "*:gpu", State::Ok),
            ("ONEAPI_DEVICE_SELECTOR", "!cuda:*", State::Ok),
            ("ONEAPI_DEVICE_SELECTOR", "cuda:*", State::Ok),
            ("ONEAPI_DEVICE_SELECTOR", "opencl:cpu", State::Warning),
            ("ONEAPI_DEVICE_SELECTOR", "!level_zero:*", State::Warning),
            ("LD_PRELOAD", "/opt/liburscope.so", State::Warning),
            ("LD_PRELOAD", "/opt/libasan.so", State::Ok),
            ("UR_ENABLE_LAYERS", "UR_LAYER_FULL_VALIDATION;UR_LAYER_LEAK_CHECKING", State::Warning),
            ("UR_ENABLE_LAYERS", "UR_LAYER_FULL_VALIDATION,UR_LAYER_LEAK_CHECKING", State::Ok),
        ] {
            assert_eq!(state(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn a_missing_adapter_is_a_problem() {
        let variables = vec![("UR_ADAPTERS_FORCE_LOAD".to_owned(), "/nowhere/liba.so".to_owned())];
        assert_eq!(lines(&EnvironmentFacts { variables: variables.clone(), missing: Vec::new() })[0].state, State::Ok);
        assert_eq!(
            lines(&EnvironmentFacts { variables, missing: vec!["/nowhere/liba.so".into()] })[0].state,
            State::Problem
        );
    }
}
