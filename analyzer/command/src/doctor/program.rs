//! Checks a program: whether urscope can be loaded into it, which libraries it gets, and what call stacks would show.
//!
//! The dynamic loader says which libraries it would load (`ld.so --list`). The program itself is not run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::line::Line;
use crate::elf::{self, Names};
use crate::program::Program;

const CHECK: &str = "program";

/// How the names of the libraries begin that GPU memory is shared through.
const RUNTIMES: [&str; 3] = ["libsycl.so", "libur_loader.so", "libze_loader.so"];

/// A library by its name, and the file that the dynamic loader would take.
type Library = (String, Option<PathBuf>);

#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramFacts {
    path: PathBuf,
    interpreter: Option<PathBuf>,
    /// Why nothing can be loaded into it.
    obstacle: Option<(String, &'static str)>,
    sanitizer: Option<String>,
    /// The libraries that it would get, each with its file if there is one.
    libraries: Vec<Library>,
    /// Why they are not known.
    unknown: Option<String>,
    names: Names,
}

/// Examines the program of that name. The error says why it cannot be run.
pub(crate) fn gather(name: &OsStr) -> Result<ProgramFacts, String> {
    let program = Program::find(name, std::env::var_os("PATH").as_deref()).map_err(|error| error.to_string())?;
    let binary = program.binary();
    let listed =
        elf::loader(&binary).ok_or_else(|| "it has no dynamic loader".into()).and_then(|loader| list(&loader, &binary));
    let (libraries, unknown) = listed.map_or_else(|why: String| (Vec::new(), Some(why)), |listed| (listed, None));
    Ok(ProgramFacts {
        obstacle: program.obstacle(),
        sanitizer: program.sanitizer(),
        libraries,
        unknown,
        names: elf::names(&program.path),
        interpreter: program.interpreter(),
        path: program.path,
    })
}

/// The directory of the SYCL runtime that a program, or the interpreter of a script, is linked with.
pub(crate) fn linked_runtime(program: &Program) -> Option<PathBuf> {
    let binary = program.binary();
    // Asking the dynamic loader takes a process.
    elf::library(&binary).ok()?.needed.iter().find(|needed| needed.starts_with(RUNTIMES[0]))?;
    let libraries = list(&elf::loader(&binary)?, &binary).ok()?;
    ProgramFacts { libraries, ..ProgramFacts::default() }.runtime().map(Path::to_owned)
}

/// The libraries that the dynamic loader would load.
fn list(loader: &Path, binary: &Path) -> Result<Vec<Library>, String> {
    // A relative path without a slash would be searched for.
    let binary = std::path::absolute(binary).map_err(|error| error.to_string())?;
    let mut command = Command::new(loader);
    command.arg("--list").arg(binary).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    let done = command.output().map_err(|error| format!("{}: {error}", loader.display()))?;
    let listed = parse(&String::from_utf8_lossy(&done.stdout));
    if listed.is_empty() && !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
    }
    Ok(listed)
}

/// The lines `NAME => FILE (ADDRESS)` and `NAME => not found`.
fn parse(text: &str) -> Vec<Library> {
    let library = |line: &str| {
        let (name, place) = line.trim().split_once(" => ")?;
        let file = place.rsplit_once(" (").map(|(file, _)| PathBuf::from(file));
        Some((name.to_owned(), file.filter(|file| file.is_absolute())))
    };
    text.lines().filter_map(library).collect()
}

impl ProgramFacts {
    /// The program, or the interpreter of a script.
    pub(crate) fn path(&self) -> &Path {
        self.interpreter.as_deref().unwrap_or(&self.path)
    }

    /// The directory of the SYCL runtime that the program is linked with.
    pub(crate) fn runtime(&self) -> Option<&Path> {
        let (_, file) = self.libraries.iter().find(|(name, file)| name.starts_with("libsycl.so") && file.is_some())?;
        file.as_ref()?.parent()
    }
}

pub(crate) fn lines(facts: &ProgramFacts) -> Vec<Line> {
    let path = facts.path.display();
    let what = match &facts.interpreter {
        Some(interpreter) => format!("{path}, a script for {}", interpreter.display()),
        None => path.to_string(),
    };
    if let Some((obstacle, remedy)) = &facts.obstacle {
        return vec![Line::problem(CHECK, format!("{what}: {obstacle}"), *remedy)];
    }
    let mut first = Line::ok(CHECK, format!("{what}: urscope can be loaded into it"));
    if let Some(sanitizer) = &facts.sanitizer {
        first = first.with(format!("it is linked with {sanitizer}, which `urscope run` loads first"));
    }
    let mut lines = vec![first, libraries(facts)];
    lines.extend(names(facts));
    lines
}

fn libraries(facts: &ProgramFacts) -> Line {
    if let Some(why) = &facts.unknown {
        return Line::warning("libraries", format!("not known: {why}"), "start the program once to see");
    }
    let libraries = &facts.libraries;
    let missing: Vec<&str> =
        libraries.iter().filter(|(_, file)| file.is_none()).map(|(name, _)| name.as_str()).collect();
    if !missing.is_empty() {
        return Line::problem(
            "libraries",
            format!("not found: {}", missing.join(", ")),
            "activate the environment that they are in, or name their directory in LD_LIBRARY_PATH",
        );
    }
    let of_runtime = |(name, file): &Library| {
        let file = file.as_ref().filter(|_| RUNTIMES.iter().any(|runtime| name.starts_with(runtime)))?;
        Some(file.display().to_string())
    };
    let found: Vec<String> = libraries.iter().filter_map(of_runtime).collect();
    if found.is_empty() {
        return Line::ok("libraries", "the program is not linked with SYCL or Level Zero")
            .with("if it loads them at run time, as Python does, urscope still traces them; the lines below describe the libraries of the system");
    }
    Line::ok("libraries", found.join(", "))
}

/// What to do for more than a program's own names.
const LINES: &str = "for functions and lines compile with -g, or keep a copy with debug information and name its directory \
                     with --symbols";

fn names(facts: &ProgramFacts) -> Option<Line> {
    if facts.interpreter.is_some() {
        return None;
    }
    Some(match facts.names {
        Names::Lines => Line::ok("symbols", "call stacks show functions, files and lines"),
        Names::Functions => Line::ok("symbols", "call stacks show functions, but no lines").with(LINES),
        Names::None => Line::warning("symbols", "the program is stripped: call stacks show addresses in it", LINES),
        Names::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::line::State;

    fn program(libraries: &str) -> ProgramFacts {
        ProgramFacts {
            path: "/app".into(),
            libraries: parse(libraries),
            names: Names::Lines,
            ..ProgramFacts::default()
        }
    }

    fn states(facts: &ProgramFacts) -> Vec<(State, &'static str)> {
        lines(facts).iter().map(|line| (line.state, line.check)).collect()
    }

    #[test]
    fn what_the_loader_lists_is_read() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibsycl.so.9 => /opt/lib/libsycl.so.9 (0x00007f)\n\t\
                      libgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let found = parse(listed);
        assert_eq!(found, [("libsycl.so.9".into(), Some("/opt/lib/libsycl.so.9".into())), ("libgone.so".into(), None)]);
        assert_eq!(program(listed).runtime(), Some(Path::new("/opt/lib")));
    }

    #[test]
    fn a_missing_library_is_a_problem() {
        let missing = program("libsycl.so.9 => not found\n");
        assert_eq!(states(&missing)[1], (State::Problem, "libraries"));
        assert_eq!(missing.runtime(), None);
        let ok = [(State::Ok, "program"), (State::Ok, "libraries"), (State::Ok, "symbols")];
        assert_eq!(states(&program("libsycl.so.9 => /opt/libsycl.so.9 (0x1)\n")), ok);
        assert_eq!(states(&program("libc.so.6 => /lib/libc.so.6 (0x1)\n")), ok);
    }

    #[test]
    fn a_stripped_program_is_told_what_would_help() {
        let stripped = ProgramFacts { names: Names::None, ..program("") };
        let symbols = lines(&stripped).pop().unwrap();
        assert_eq!(symbols.state, State::Warning);
        assert!(symbols.advice.unwrap().contains("--symbols"));
    }

    #[test]
    fn what_cannot_be_traced_is_a_problem() {
        let fixed =
            ProgramFacts { obstacle: Some(("it is statically linked".into(), "link it dynamically")), ..program("") };
        assert_eq!(states(&fixed), [(State::Problem, "program")]);
    }

    #[test]
    fn a_program_of_this_machine_is_examined() {
        let facts = gather(OsStr::new("sh")).unwrap();
        assert!(facts.libraries.iter().any(|(name, _)| name == "libc.so.6"), "{facts:?}");
        assert!(gather(OsStr::new("/nowhere/program")).unwrap_err().contains("/nowhere/program"));
    }
}
