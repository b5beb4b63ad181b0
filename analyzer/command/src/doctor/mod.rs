//! `urscope doctor`: checks whether programs that share memory between processes can be run and traced on this machine.
//!
//! Each check gathers facts, and a pure function makes a [`Line`] of them, so that tests can check the report about any
//! machine. The doctor must not change anything on the machine.

mod cuda;
mod environment;
mod exchange;
mod gpu;
mod level_zero;
mod line;
mod loading;
pub(crate) mod probe;
mod program;
pub(crate) mod runtime;
pub(crate) mod search;
mod shim;
mod system;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use urscope_schema::counted;

use crate::{arguments::Device, program::Program};
use line::{Line, State};

#[derive(Debug, Serialize)]
pub(crate) struct Checkup {
    version: u32,
    /// Whether there is no problem.
    pub(crate) able: bool,
    lines: Vec<Line>,
}

/// Checks the machine for programs that run on `device`, with the runtime in `runtime`, that of `program`, or where a
/// program would find it. The error says why that program cannot be run.
pub(crate) fn examine(runtime: Option<&Path>, device: Device, program: Option<&OsStr>) -> Result<Checkup, String> {
    let program = program.map(program::gather).transpose()?;
    let of_program = program.as_ref().and_then(program::ProgramFacts::runtime).map(|folder| ("the program", folder));
    let places = search::places(runtime.map(|folder| ("--runtime", folder)).or(of_program));
    let places = match (&program, std::env::current_exe()) {
        _ if runtime.is_some() || of_program.is_some() => places,
        (Some(program), _) => places.and_around("the program", program.path()),
        (None, Ok(urscope)) => places.and_around("urscope", &urscope),
        (None, Err(_)) => places,
    };
    let found = runtime::find(&places);
    let mut lines = vec![shim::line(&crate::parts::library())];
    lines.extend(program.iter().flat_map(program::lines));
    let nodes = gpu::gather();
    let cuda = (device == Device::Native).then(|| cuda::gather(found.as_ref(), &places, &nodes));
    lines.extend(runtime::lines(found.as_ref(), &places, device, runtime.is_some()));
    lines.extend(level_zero::lines(&level_zero::gather(device, found.as_ref(), &places, &nodes)));
    lines.extend(cuda.iter().flat_map(cuda::lines));
    lines.push(exchange::line(&exchange::gather()));
    lines.extend(system::lines());
    lines.extend(environment::lines(&environment::gather()));
    // What is called ok is loaded.
    let lines: Vec<Line> = lines.into_iter().map(|line| line.loaded(loading::failure)).collect();
    let able = lines.iter().all(|line| line.state != State::Problem);
    Ok(Checkup { version: 1, able, lines })
}

/// The dispatcher of XPTI in the SYCL runtime that a program would find, as far as that can be known before it runs:
/// where it is wanted, or where the runtime hides its adapters.
pub(crate) fn dispatcher_of(program: &Program, is_wanted: bool) -> Option<PathBuf> {
    let places = match program::linked_runtime(program) {
        Some(folder) => search::places(Some(("the program", &folder))),
        None => search::of_environment(&program.binary()),
    };
    let runtime = runtime::find(&places)?;
    runtime.dispatcher.clone().filter(|_| is_wanted || runtime.hides_adapters())
}

/// Whether the machine has a GPU.
pub(crate) fn has_gpu() -> bool {
    !gpu::gather().is_empty()
}

impl Checkup {
    pub(crate) fn write(&self, mut out: &mut dyn Write, color: bool) -> io::Result<()> {
        for line in &self.lines {
            line.write(&mut out, color)?;
        }
        let count = |state| self.lines.iter().filter(|line| line.state == state).count();
        let problems = count(State::Problem);
        let warnings = count(State::Warning);
        let verdict =
            if self.able { "urscope works on this machine" } else { "urscope does not work on this machine yet" };
        let advice = match problems {
            0 => "",
            1 => ". Fix the problem, then run `urscope doctor` again",
            _ => ". Fix the problems, then run `urscope doctor` again",
        };
        writeln!(out, "\n{verdict}: {}, {}{advice}", counted(problems, "problem"), counted(warnings, "warning"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_contain_the_same() {
        let lines = vec![
            Line::ok("kernel", "6.1"),
            Line::problem("descriptors", "pidfd_getfd was refused", "ask the administrator"),
        ];
        let checkup = Checkup { version: 1, able: false, lines };
        let mut text = Vec::new();
        checkup.write(&mut text, false).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "ok       kernel       6.1\n\
             problem  descriptors  pidfd_getfd was refused\n                      \
             -> ask the administrator\n\n\
             urscope does not work on this machine yet: 1 problem, 0 warnings. Fix the problem, then run `urscope doctor` again\n"
        );
        let json: serde_json::Value = serde_json::to_value(&checkup).unwrap();
        assert_eq!(json["able"], false);
        assert_eq!(json["lines"][1]["state"], "problem");
        assert_eq!(json["lines"][1]["check"], "descriptors");
        assert_eq!(json["lines"][0].get("advice"), None);
    }
}
