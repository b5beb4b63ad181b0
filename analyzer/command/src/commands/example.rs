//! `urscope example`: small programs with one mistake each, to try urscope with.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, error::Error, fmt::Display, fs};

use clap::Args;
use urscope_rules::Rule;

use crate::doctor::{runtime, search};
use crate::output::written;
use crate::program::Program;
use crate::run::exit_code;
use crate::shell::quoted;

/// Show, write or run a small program with one mistake.
///
/// The programs share memory of a GPU between two processes through SYCL. Each makes one mistake that a rule finds; its
/// first lines say which. Python needs dpctl: `pip install 'urscope[dpctl]'`. C++ needs a C++ compiler, such as g++,
/// and the headers of a SYCL runtime of release 2026.2 or later, which come with dpctl, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope example                             the programs\n  \
        urscope example --run freed-while-open      write freed_while_open.py here, and run it under urscope\n  \
        urscope example freed-while-open --cpp      write freed_while_open.cpp here\n\n\
        Exit codes: 0 shown or written, 2 not written; of a run, those of urscope run.")]
pub(crate) struct ExampleArguments {
    /// The rule that finds the mistake. Without it, all programs are listed.
    #[arg(value_name = "RULE")]
    rule: Option<String>,

    /// Also run the program under urscope, on the software device.
    #[arg(long, requires = "rule")]
    run: bool,

    /// The program in Python. This is the default.
    #[arg(long, conflicts_with = "cpp")]
    python: bool,

    /// The program in C++.
    #[arg(long)]
    cpp: bool,
}

/// A program with a mistake.
struct Example {
    rule: &'static str,
    python: &'static str,
    cpp: &'static str,
}

macro_rules! examples {
    ($($rule:literal: $name:literal,)*) => {
        &[$(Example {
            rule: $rule,
            python: include_str!(concat!("example/", $name, ".py")),
            cpp: include_str!(concat!("example/", $name, ".cpp")),
        }),*]
    };
}

const EXAMPLES: &[Example] = examples! {
    "freed-while-open": "freed_while_open",
    "leaked-mapping": "leaked_mapping",
    "use-after-free": "use_after_free",
    "use-after-put": "use_after_put",
};

/// The options of the compiler, besides those that name directories.
const OPTIONS: [&str; 4] = ["-std=c++17", "-g", "-O1", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"];

/// Lists the programs, writes one, or runs it. The exit code of a run is that of `urscope run`.
pub(crate) fn example(arguments: &ExampleArguments, interpreter: Option<&Path>) -> Result<ExitCode, Box<dyn Error>> {
    let Some(name) = &arguments.rule else {
        written(io::stdout().write_all(list().as_bytes()), "standard output cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    };
    let known = EXAMPLES.iter().find(|example| example.rule == name);
    let Some(example) = known else {
        let known: Vec<_> = EXAMPLES.iter().map(|example| example.rule).collect();
        return Err(format!("there is no example of {name:?}; there are {}", known.join(", ")).into());
    };
    let interpreter = interpreter.unwrap_or(Path::new("python3"));
    let (ending, text) = if arguments.cpp { ("cpp", example.cpp) } else { ("py", example.python) };
    let file = PathBuf::from(format!("{}.{ending}", example.rule.replace('-', "_")));
    let is_new = write(&file, text)?;
    let compile = if arguments.cpp { Some(compilation(&file, interpreter)?) } else { None };
    let program = match &compile {
        Some((_, program)) => vec![Path::new(".").join(program).display().to_string()],
        None => vec![interpreter.display().to_string(), file.display().to_string()],
    };
    let run: Vec<String> =
        ["run", "--device", "software", "--"].map(str::to_owned).into_iter().chain(program).collect();
    if !arguments.run {
        let compile = compile.map_or_else(String::new, |(compile, _)| format!("$ {}\n", line(&compile)));
        let said = format!("wrote {}; next:\n{compile}$ urscope {}\n", file.display(), line(&run));
        written(io::stdout().write_all(said.as_bytes()), "standard output cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    }
    match compile {
        Some((compile, program)) if is_new || !program.exists() => self::compile(&compile)?,
        Some(_) => {}
        None => has_modules(interpreter)?,
    }
    show(format_args!("urscope {}", line(&run)));
    let ended = Command::new(env::current_exe()?).args(run).status()?;
    Ok(exit_code(ended).into())
}

/// Shows a command before it is run.
fn show(command: impl Display) {
    drop(writeln!(io::stderr(), "$ {command}"));
}

fn compile(command: &[String]) -> Result<(), String> {
    show(line(command));
    let [compiler, rest @ ..] = command else { return Ok(()) };
    let ended = Command::new(compiler).args(rest).status();
    let ended = ended.map_err(|error| format!("{compiler} cannot be run: {error}; name a C++ compiler in CXX"))?;
    if ended.success() { Ok(()) } else { Err("the program was not compiled".into()) }
}

/// The programs, one in a line, with what is wrong in each.
fn list() -> String {
    let title = |example: &Example| Rule::named(example.rule).map_or("", |rule| rule.title);
    let lines = EXAMPLES.iter().map(|example| format!("{:<18} {}", example.rule, title(example)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Writes the program into the current directory, unless it is there. Returns whether it was not.
fn write(file: &Path, text: &str) -> Result<bool, String> {
    match fs::read_to_string(file) {
        Ok(there) if there == text => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return Err(format!("{} is something else than the example; move it away", file.display())),
    }
    fs::write(file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    Ok(true)
}

/// The command that compiles a program, and the file that it makes.
fn compilation(file: &Path, interpreter: &Path) -> Result<(Vec<String>, PathBuf), String> {
    let interpreter = Program::find(interpreter.as_os_str(), env::var_os("PATH").as_deref()).map(|found| found.path);
    let places = search::of_environment(&interpreter.unwrap_or_default()).and_system();
    let runtime = runtime::find(&places).and_then(|runtime| Some(runtime.library.parent()?.parent()?.to_owned()));
    let runtime = runtime.filter(|runtime| runtime.join("include/sycl").is_dir()).ok_or_else(|| {
        format!(
            "no SYCL runtime with headers was found in {}; `pip install 'urscope[dpctl]'` brings one, or activate the environment of one",
            places.described()
        )
    })?;
    let compiler = env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
    let program = file.with_extension("");
    let runtime = runtime.display();
    let (source, made) = (file.display().to_string(), program.display().to_string());
    let folders =
        ["include", "include/sycl"].into_iter().flat_map(|name| ["-isystem".into(), format!("{runtime}/{name}")]);
    let link = [format!("-L{runtime}/lib"), "-lsycl".into(), format!("-Wl,-rpath,{runtime}/lib")];
    let link = link.into_iter().chain([format!("-Wl,-rpath-link,{runtime}/lib")]);
    let compile = std::iter::once(compiler).chain(OPTIONS.map(str::to_owned)).chain(folders);
    Ok((compile.chain([source, "-o".into(), made]).chain(link).collect(), program))
}

/// Checks that the interpreter has what the programs import.
fn has_modules(interpreter: &Path) -> Result<(), String> {
    let shown = interpreter.display();
    for module in ["dpctl", "urscope"] {
        let mut import = Command::new(interpreter);
        import.args(["-c", &format!("import {module}")]).stdin(Stdio::null()).stderr(Stdio::null());
        let imported = import.status().map_err(|error| format!("{shown} cannot be run: {error}"))?;
        if !imported.success() {
            return Err(format!(
                "{shown} cannot import {module}; `pip install 'urscope[dpctl]'` brings it, or use --cpp for the program in C++"
            ));
        }
    }
    Ok(())
}

/// Words as a shell takes them.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(Path::new(word))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_example_is_of_a_rule_and_says_what_is_wrong() {
        for Example { rule, python, cpp } in EXAMPLES {
            let file = rule.replace('-', "_");
            assert!(Rule::named(rule).is_some(), "{rule}");
            assert!(
                python.starts_with("\"\"\"A mistake to try urscope with: ") && python.contains("To fix it, "),
                "{rule}"
            );
            assert!(python.contains(&format!("python3 {file}.py")), "{rule}");
            assert!(cpp.starts_with("// A mistake to try urscope with: ") && cpp.contains("To fix it, "), "{rule}");
        }
    }

    #[test]
    fn what_is_there_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.py");
        assert_eq!(write(&file, "one"), Ok(true));
        assert_eq!(write(&file, "one"), Ok(false));
        assert!(write(&file, "two").unwrap_err().contains("is something else"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    }
}
