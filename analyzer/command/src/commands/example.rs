//! `urscope example`: small programs, most with one mistake, to try urscope with.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, error::Error, fmt::Display, fs};

use clap::Args;
use urscope_rules::Rule;

use crate::arguments::Names;
use crate::doctor::{runtime, search};
use crate::output::written;
use crate::parts;
use crate::program::Program;
use crate::run::exit_code;
use crate::shell::quoted;

/// Show, write or run a small program, most with one mistake.
///
/// The programs share memory of a GPU between processes: through SYCL, the CUDA driver or Level Zero. The first lines
/// of each say what is wrong in it, and how to fix it. Those in Python need dpctl: `pip install 'urscope[dpctl]'`.
/// Those in C++ need a C++ compiler, such as g++, and the headers of a SYCL runtime of release 2026.2 or later, which
/// come with dpctl, too. Those in C need a C compiler alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        urscope example                             the programs\n  \
        urscope example --run freed-while-open      write freed_while_open.py here, and run it under urscope\n  \
        urscope example freed-while-open --cpp      write freed_while_open.cpp here\n  \
        urscope example --run cuda right            run that for the CUDA driver without its mistake\n\n\
        Exit codes: 0 shown or written, 2 not written; of a run, those of urscope run.")]
pub(crate) struct ExampleArguments {
    /// The name of a program. Without it, all are listed.
    #[arg(value_name = "NAME", value_parser = Names(names), hide_possible_values = true)]
    name: Option<String>,

    /// The argument of the program: with `right`, the one for ranks, that of CUDA and that of Level Zero make no
    /// mistake.
    #[arg(value_name = "ARGUMENT")]
    argument: Option<String>,

    /// Also run the program under urscope, on the software device.
    #[arg(long, requires = "name")]
    run: bool,

    /// The program in Python. This is the default where there is one.
    #[arg(long, conflicts_with = "cpp")]
    python: bool,

    /// The program in C++.
    #[arg(long)]
    cpp: bool,
}

/// A language of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    Cpp,
    C,
}

impl Language {
    const fn ending(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::Cpp => "cpp",
            Self::C => "c",
        }
    }
}

/// A program.
struct Example {
    /// The rule that finds its mistake, or what the program is.
    name: &'static str,
    /// What it is, of one that is not named by a rule.
    title: &'static str,
    /// The device that it runs on.
    device: &'static str,
    /// Its text in each language, the usual one first.
    texts: &'static [(Language, &'static str)],
}

macro_rules! text {
    ($language:ident $name:literal $ending:literal) => {
        (Language::$language, include_str!(concat!("example/", $name, ".", $ending)))
    };
}

macro_rules! examples {
    ($($name:literal $file:literal,)*) => {
        [$(Example {
            name: $name,
            title: "",
            device: "software",
            texts: &[text!(Python $file "py"), text!(Cpp $file "cpp")],
        }),*]
    };
}

/// Those that are named by a rule.
const OF_RULES: [Example; 4] = examples! {
    "freed-while-open" "freed_while_open",
    "leaked-mapping" "leaked_mapping",
    "use-after-free" "use_after_free",
    "use-after-put" "use_after_put",
};

const OTHERS: [Example; 4] = [
    Example {
        name: "clean",
        title: "a program without a mistake",
        device: "software",
        texts: &[text!(Python "clean" "py"), text!(Cpp "clean" "cpp")],
    },
    Example {
        name: "ranks",
        title: "ranks of MPI or Slurm, or processes by fork: memory is freed while others have it open",
        device: "software",
        texts: &[text!(Cpp "ranks" "cpp")],
    },
    Example {
        name: "cuda",
        title: "the CUDA driver: memory is freed while another process has it open",
        device: "software-cuda",
        texts: &[text!(C "cuda" "c")],
    },
    Example {
        name: "level-zero",
        title: "Level Zero: a mapping is closed twice",
        device: "software",
        texts: &[text!(C "level_zero" "c")],
    },
];

fn all() -> impl Iterator<Item = &'static Example> {
    OF_RULES.iter().chain(&OTHERS)
}

fn names() -> Vec<&'static str> {
    all().map(|example| example.name).collect()
}

impl Example {
    /// The language that was asked for, or the usual one, and the text in it.
    fn text(&self, arguments: &ExampleArguments) -> Result<(Language, &'static str), String> {
        let wanted = |language| match language {
            Language::Python => !arguments.cpp,
            Language::Cpp => !arguments.python,
            Language::C => !arguments.python && !arguments.cpp,
        };
        let found = self.texts.iter().find(|(language, _)| wanted(*language));
        found.copied().ok_or_else(|| {
            let others: Vec<_> = self.texts.iter().map(|(language, _)| format!("*.{}", language.ending())).collect();
            format!("{} is not in this language, but as {}: leave out the option", self.name, others.join(", "))
        })
    }

    fn title(&self) -> &'static str {
        Rule::named(self.name).map_or(self.title, |rule| rule.title)
    }
}

/// The options of the compiler, besides those that name directories.
const OPTIONS: [&str; 4] = ["-std=c++17", "-g", "-O1", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING"];

/// Lists the programs, writes one, or runs it. The exit code of a run is that of `urscope run`.
pub(crate) fn example(arguments: &ExampleArguments, interpreter: Option<&Path>) -> Result<ExitCode, Box<dyn Error>> {
    let Some(name) = &arguments.name else {
        written(io::stdout().write_all(list().as_bytes()), "standard output cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    };
    let known = all().find(|example| example.name == name);
    let example = known.ok_or_else(|| format!("there is no example of {name:?}; there are {}", names().join(", ")))?;
    let interpreter = interpreter.unwrap_or(Path::new("python3"));
    let (language, text) = example.text(arguments)?;
    let file = PathBuf::from(format!("{}.{}", example.name.replace('-', "_"), language.ending()));
    let is_new = write(&file, text)?;
    let compile = match language {
        Language::Python => None,
        Language::Cpp => Some(compilation(&file, interpreter)?),
        Language::C => Some(compilation_of_c(&file, example.device)?),
    };
    let mut command: Vec<String> = ["run", "--device", example.device, "--"].map(str::to_owned).into();
    let folder = if let Some((_, program)) = &compile {
        command.push(Path::new(".").join(program).display().to_string());
        None
    } else {
        command.extend([interpreter, &file].map(|word| word.display().to_string()));
        package_folder(interpreter)
    };
    command.extend(arguments.argument.clone());
    let path = folder.as_deref().map(|folder| format!("PYTHONPATH={} ", quoted(folder))).unwrap_or_default();
    let shown = format!("{path}urscope {}", line(&command));
    if !arguments.run {
        let compile = compile.map_or_else(String::new, |(compile, _)| format!("$ {}\n", line(&compile)));
        let is_asked = arguments.argument.is_some() || !text.contains("\"right\"");
        let right = if is_asked { String::new() } else { format!("$ {shown} right  # without the mistake\n") };
        let said = format!("wrote {}; next:\n{compile}$ {shown}\n{right}", file.display());
        written(io::stdout().write_all(said.as_bytes()), "standard output cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    }
    match compile {
        Some((compile, program)) if is_new || !program.exists() => self::compile(&compile)?,
        Some(_) => {}
        None => has_modules(interpreter, folder.as_deref())?,
    }
    show(shown);
    let mut run = Command::new(env::current_exe()?);
    if let Some(folder) = &folder {
        run.env("PYTHONPATH", with_folder(folder));
    }
    Ok(exit_code(run.args(command).status()?).into())
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
    let lines = all().map(|example| format!("{:<18} {}", example.name, example.title()));
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
    let compiler = compiler("CXX", "c++");
    let program = file.with_extension("");
    let runtime = runtime.display();
    let source = file.display().to_string();
    let made = program.display().to_string();
    let folders =
        ["include", "include/sycl"].into_iter().flat_map(|name| ["-isystem".into(), format!("{runtime}/{name}")]);
    let link = [format!("-L{runtime}/lib"), "-lsycl".into(), format!("-Wl,-rpath,{runtime}/lib")];
    let link = link.into_iter().chain([format!("-Wl,-rpath-link,{runtime}/lib")]);
    let compile = std::iter::once(compiler).chain(OPTIONS.map(str::to_owned)).chain(folders);
    Ok((compile.chain([source, "-o".into(), made]).chain(link).collect(), program))
}

/// The compiler that a variable names, or the usual one.
fn compiler(variable: &str, usual: &str) -> String {
    env::var(variable).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| usual.into())
}

/// The command that compiles a program in C, and the file that it makes. It is linked with the software device, which
/// has the name of the driver's library.
fn compilation_of_c(file: &Path, device: &str) -> Result<(Vec<String>, PathBuf), String> {
    let library = if device == "software-cuda" { parts::cuda() } else { parts::device() };
    let library = library.map_err(|missing| missing.to_string())?;
    let program = file.with_extension("");
    let [source, made, library] = [file, &program, &library].map(|path| path.display().to_string());
    let compile = [compiler("CC", "cc"), "-g".into(), "-O1".into(), source, "-o".into(), made, library];
    Ok((compile.into(), program))
}

/// The folder of the Python package that an interpreter does not find by itself, as one of a virtual environment beside
/// the tarball or the Debian package.
fn package_folder(interpreter: &Path) -> Option<PathBuf> {
    if imports(interpreter, "urscope", None).unwrap_or(true) {
        return None;
    }
    parts::python().filter(|folder| imports(interpreter, "urscope", Some(folder)).unwrap_or(false))
}

/// PYTHONPATH with a folder in front.
fn with_folder(folder: &Path) -> OsString {
    let others = env::var_os("PYTHONPATH").filter(|others| !others.is_empty());
    let mut path = folder.as_os_str().to_owned();
    if let Some(others) = others {
        path.push(":");
        path.push(others);
    }
    path
}

/// Whether an interpreter can import a module, with this folder in front of its path.
fn imports(interpreter: &Path, module: &str, folder: Option<&Path>) -> io::Result<bool> {
    let mut import = Command::new(interpreter);
    import.args(["-B", "-c", &format!("import {module}")]).stdin(Stdio::null()).stderr(Stdio::null());
    if let Some(folder) = folder {
        import.env("PYTHONPATH", with_folder(folder));
    }
    Ok(import.status()?.success())
}

/// Checks that the interpreter has what the programs import.
fn has_modules(interpreter: &Path, folder: Option<&Path>) -> Result<(), String> {
    let shown = interpreter.display();
    for module in ["dpctl", "urscope"] {
        let imported =
            imports(interpreter, module, folder).map_err(|error| format!("{shown} cannot be run: {error}"))?;
        if !imported {
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
    fn each_example_says_what_is_wrong() {
        for example in all() {
            let file = example.name.replace('-', "_");
            assert!(!example.title().is_empty() && Rule::named(example.name).is_some() == example.title.is_empty());
            for (language, text) in example.texts {
                let has_mistake = example.name != "clean";
                let begins =
                    if has_mistake { "A mistake to try urscope with: " } else { "A program to try urscope with: " };
                let comment = if *language == Language::Python { "\"\"\"" } else { "// " };
                assert!(text.starts_with(&format!("{comment}{begins}")), "{file}");
                assert_eq!(text.replace("\n// ", " ").contains("To fix it, "), has_mistake, "{file}");
                assert!(*language != Language::Python || text.contains(&format!("python3 {file}.py")), "{file}");
            }
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
