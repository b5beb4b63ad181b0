//! Every command line of the documents that are written by hand is run, and prints what its document shows.
//!
//! A document is one session of a shell, in a folder that looks like the root of the repository and takes what the
//! commands write. CONTRIBUTING.md says how a document marks what is special about a command. Must never run an
//! illustration.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fmt::Write as _, os::unix::fs::symlink, path::Path, time::Duration};

use tempfile::TempDir;
use urscope_tests::run::{Session, urscope};
use urscope_tests::{Release, artefacts, launcher, python_with, repository};

use super::block::{Block, Command, blocks};
use super::{code_spans, hand_written, read};
use crate::installed::CMAKE;
use crate::python::{PYTEST, packages};

/// How many commands of each document are run, and how many commands and files it only shows. Whoever adds an
/// illustration, or a command, changes a number here.
#[rustfmt::skip]
const COUNTS: [(&str, usize, usize); 22] = [
    ("README.md", 8, 7),
    ("docs/ci.md", 12, 3),
    ("docs/clients.md", 0, 1),
    ("docs/comparison.md", 5, 0),
    ("docs/cuda.md", 2, 1),
    ("docs/gpus.md", 0, 5),
    ("docs/install.md", 9, 24),
    ("docs/level-zero.md", 6, 0),
    ("docs/mpi.md", 0, 1),
    ("docs/museum.md", 22, 0),
    ("docs/performance.md", 0, 2),
    ("docs/privacy.md", 5, 0),
    ("docs/python.md", 7, 2),
    ("docs/races.md", 2, 0),
    ("docs/reference.md", 24, 0),
    ("docs/start-ci.md", 9, 5),
    ("docs/start-cuda.md", 9, 6),
    ("docs/start-mpi.md", 12, 6),
    ("docs/start-python.md", 9, 5),
    ("docs/troubleshooting.md", 16, 1),
    ("docs/tutorial.md", 15, 2),
    ("docs/view.md", 6, 3),
];

/// The tree that a document uses, as if the tarball had been unpacked in its folder.
const UNPACKED: &str = "urscope-*-x86_64-linux";

/// A session compiles programs, and other tests run at the same time.
const LIMIT: Duration = Duration::from_mins(8);

/// What the shell writes in front of the output of each command, and behind it.
const MARK: &str = "@@@";

/// The script of a document: its commands with marks around them, and its files where the document shows them.
fn script(blocks: &[Block]) -> String {
    let mut script = String::from("exec 2>&1\n");
    for block in blocks.iter().filter(|block| !block.illustration) {
        if let Some(file) = block.file {
            let _ = writeln!(script, "cat >{file} <<'{MARK}'\n{}\n{MARK}", block.lines.join("\n"));
        }
        for Command { line, text, until_interrupted, .. } in block.commands() {
            let text = if until_interrupted { interrupted(&text) } else { text };
            let _ = writeln!(script, "printf '\\n{MARK} {line}\\n'\n{text}\nprintf '\\n{MARK} %d\\n' $?");
        }
    }
    script
}

/// A command that goes on until Ctrl-C is pressed, which it says itself. Its output is not shown.
fn interrupted(text: &str) -> String {
    // A shell without a terminal makes what runs in the background ignore SIGINT.
    format!(
        "rm -f said\n\
         env --default-signal=INT {text} >said 2>&1 & background=$!\n\
         until grep -qs 'until Ctrl-C' said; do kill -0 $background || break; sleep 0.1; done\n\
         kill -INT $background; wait $background"
    )
}

/// The folder of a session, with a space in its name: links to what git keeps of the repository and to what is built,
/// and room for more.
fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("urscope documents ").tempdir().expect("no temporary folder");
    let kept = std::process::Command::new("git").args(["ls-files"]).current_dir(repository()).output();
    let kept = String::from_utf8(kept.expect("git is there").stdout).expect("names of files are text");
    let entries: BTreeSet<&str> = kept.lines().filter_map(|path| path.split('/').next()).chain(["target"]).collect();
    for entry in entries {
        symlink(repository().join(entry), folder.path().join(entry)).expect("a link to an entry");
    }
    folder
}

/// What each command wrote, by its line, and its exit code.
fn results(said: &str) -> BTreeMap<usize, (String, i32)> {
    let mut results = BTreeMap::new();
    let mark = format!("\n{MARK} ");
    let mut parts = said.split(mark.as_str()).skip(1);
    while let (Some(begin), Some(end)) = (parts.next(), parts.next()) {
        let (line, output) = begin.split_once('\n').unwrap_or((begin, ""));
        let code = end.split('\n').next().unwrap_or_default().parse().expect("an exit code");
        results.insert(line.parse().expect("the number of a line"), (output.to_owned(), code));
    }
    results
}

/// The words of a text, without what differs from run to run and from machine to machine: process numbers, addresses,
/// times, and the folders above the repository.
fn words(text: &str, folders: &[&Path]) -> String {
    let text = folders.iter().fold(text.to_owned(), |text, folder| text.replace(&format!("{}/", folder.display()), ""));
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let number = |word: &str| word.trim_start_matches(['+', '(']).starts_with(|c: char| c.is_ascii_digit());
        if ["ns", "us", "ms", "s", "GB/s"].contains(&word.trim_end_matches([',', ')']))
            && let Some(amount) = words.last_mut().filter(|amount| number(amount))
        {
            "TIME".clone_into(amount);
            continue;
        }
        let known = words.last().is_some_and(|before| before.ends_with("pid") || before.ends_with("thread"));
        let bare = word.trim_end_matches([',', ')', ';', '.']);
        words.push(match bare.split_once("0x") {
            _ if known && number(word) => word.replace(bare, "NUMBER"),
            Some((before, _)) => format!("{before}ADDRESS{}", &word[bare.len()..]),
            None if word.starts_with("http://127.0.0.1:") => "PAGE".to_owned(),
            None => word.to_owned(),
        });
    }
    words.join(" ")
}

/// Whether the output is what a document shows, in which a line `…` stands for any lines.
fn is_as_shown(shown: &[&str], output: &str, folders: &[&Path]) -> bool {
    let output = words(output, folders);
    let parts: Vec<String> =
        shown.split(|line| line.trim() == "…").map(|part| words(&part.join("\n"), folders)).collect();
    let first = &parts[0];
    let last = &parts[parts.len() - 1];
    if parts.len() == 1 {
        return output == *first;
    }
    let Some(rest) = output.strip_prefix(first.as_str()) else { return false };
    let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Runs the commands of a document, which is named by its path in the repository.
fn run_commands_of(document: &str) {
    let text = read(&repository().join(document));
    let blocks = blocks(&text);
    let folder = folder();
    let runtime = Release::R2026_2.folder();
    let mpi = launcher("mpich-5.0.2");
    let pytest = packages(&python_with(PYTEST));
    if text.contains(UNPACKED) {
        artefacts::stage_tree(&folder.path().join(UNPACKED.replace('*', env!("CARGO_PKG_VERSION"))));
    }
    let mut path = vec![artefacts::command(), runtime.join("bin/python"), mpi, python_with(CMAKE)];
    for program in &mut path {
        assert!(program.pop(), "a program lies in a folder");
    }
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let said = Session::new(&script(&blocks), folder.path(), LIMIT)
        .env("PATH", env::join_paths(path).expect("paths without colons"))
        .env("CARGO_TARGET_DIR", artefacts::target_folder())
        .env("PYTHONPATH", env::join_paths([repository().join("python"), pytest]).expect("paths without colons"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .run()
        .stdout;
    let results = results(&said);
    let real = folder.path().canonicalize().expect("the folder is there");
    let root = repository();
    let commands = blocks.iter().filter(|block| !block.illustration).flat_map(Block::commands);
    for Command { line, text, code, shown, .. } in commands {
        let Some((output, ended)) = results.get(&line) else {
            panic!("{document}:{line}: {text} was not run, or did not end:\n{said}")
        };
        assert_eq!(*ended, code, "{document}:{line}: the exit code of {text}, which wrote:\n{output}");
        assert!(
            shown.is_empty() || is_as_shown(&shown, output, &[folder.path(), &real, &root]),
            "{document}:{line}: {text} does not write what the document shows, but:\n{output}"
        );
    }
}

macro_rules! documents {
    ($($name:ident: $path:literal,)*) => {
        $(#[test]
        fn $name() {
            run_commands_of($path);
        })*

        /// The documents whose commands are run by a test of their own.
        const RUN: &[&str] = &[$($path),*];
    };
}

documents! {
    ci: "docs/ci.md",
    comparison: "docs/comparison.md",
    cuda: "docs/cuda.md",
    install: "docs/install.md",
    level_zero: "docs/level-zero.md",
    museum: "docs/museum.md",
    privacy: "docs/privacy.md",
    python: "docs/python.md",
    races: "docs/races.md",
    readme: "README.md",
    reference: "docs/reference.md",
    start_ci: "docs/start-ci.md",
    start_cuda: "docs/start-cuda.md",
    start_mpi: "docs/start-mpi.md",
    start_python: "docs/start-python.md",
    troubleshooting: "docs/troubleshooting.md",
    tutorial: "docs/tutorial.md",
    view: "docs/view.md",
}

#[test]
fn no_command_slips_through() {
    let mut counts = Vec::new();
    for document in hand_written() {
        let text = read(&repository().join(&document));
        let blocks = blocks(&text);
        let run: usize = blocks.iter().filter(|block| !block.illustration).map(|block| block.commands().len()).sum();
        let shown: usize = blocks.iter().map(Block::illustrations).sum();
        assert_eq!(
            run > 0,
            RUN.contains(&document.as_str()),
            "{document} needs a line in documents!, or has one too many"
        );
        assert!(
            !super::has_indented_block(&text),
            "{document}: no test sees an indented block of code; put fences around it"
        );
        if run + shown > 0 {
            counts.push((document, run, shown));
        }
    }
    let counts: Vec<_> = counts.iter().map(|(document, run, shown)| (document.as_str(), *run, *shown)).collect();
    assert_eq!(counts, COUNTS, "commands that are run, and illustrations");
}

/// What a file must hold that runs this command: its program with the subcommand, or the variables that it sets.
fn essence(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split_whitespace().filter(|word| !["sudo", "export"].contains(word)).collect();
    let variables: Vec<_> = words.iter().map_while(|word| Some(word.split_once('=')?.0.to_owned())).collect();
    let [program, rest @ ..] = &words[variables.len()..] else { return variables };
    let subcommand = rest.first().filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    let named = subcommand.map_or_else(|| (*program).to_owned(), |subcommand| format!("{program} {subcommand}"));
    variables.into_iter().chain((!program.starts_with("./")).then_some(named)).collect()
}

/// Whoever installs urscope types these. What cannot be run in a session is run elsewhere, or its text says that it has
/// not been run.
#[test]
fn what_is_typed_to_install_is_run_or_said_not_to_be() {
    for document in ["README.md", "docs/install.md"] {
        let text = read(&repository().join(document));
        for block in blocks(&text).iter().filter(|block| block.illustration) {
            let place = format!("{document}:{}", block.line);
            let Some(files) = &block.by else {
                let lines: Vec<&str> = text.lines().collect();
                let around = lines[block.line.saturating_sub(8)..(block.line + 12).min(lines.len())].join(" ");
                assert!(block.untried, "{place}: say by which file it is run (`by=FILE`), or `untried`");
                assert!(around.contains("has not been run"), "{place}: the text does not say that it has not been run");
                continue;
            };
            let held: String = files.iter().map(|file| read(&repository().join(file))).collect();
            for command in block.commands() {
                for part in essence(&command.text) {
                    assert!(held.contains(&part), "{place}: {part} is not in {}", files.join(", "));
                }
            }
        }
    }
    assert_eq!(essence("sudo apt install ./x.deb"), ["apt install"]);
    assert_eq!(essence("export A=1 B=2"), ["A", "B"]);
    assert_eq!(essence("A=1 ./program"), ["A"]);
    assert_eq!(essence("tar xf x"), ["tar xf"]);
}

/// The subcommand and the options of a command line of urscope, where a text has one.
fn options(line: &str) -> Option<(&str, Vec<&str>)> {
    let (before, rest) = line.split_once("urscope ")?;
    let begins = before.is_empty() || before.ends_with([' ', '/', '\'', '"', '(', '`']);
    let own = rest.split(" -- ").next().unwrap_or(rest);
    let mut words = own.split(|c: char| c.is_whitespace() || "'\"`,()[]".contains(c)).filter(|word| !word.is_empty());
    let subcommand = words.next().filter(|word| begins && word.bytes().all(|b| b.is_ascii_lowercase()))?;
    let options = words.take_while(|word| *word != "#").filter(|word| word.starts_with("--") && word.len() > 2);
    Some((subcommand, options.map(|option| option.split('=').next().unwrap_or(option)).collect()))
}

/// Also those in illustrations and between backticks.
#[test]
fn every_option_in_the_documents_exists() {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut checked = 0;
    for document in hand_written() {
        let text = read(&repository().join(&document));
        let joined: Vec<String> =
            blocks(&text).iter().map(|block| block.lines.join("\n").replace("\\\n", " ")).collect();
        let prose = super::prose(&text);
        let lines = joined.iter().flat_map(|block| block.lines()).chain(code_spans(&prose));
        for (subcommand, named) in lines.filter_map(options).filter(|(_, named)| !named.is_empty()) {
            let help = helps.entry(subcommand.to_owned()).or_insert_with(|| urscope(&[subcommand, "--help"]).stdout);
            for option in named {
                let exists = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == option);
                assert!(exists, "{document}: urscope {subcommand} has no option {option}");
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "only {checked} options were recognized");
}

#[test]
fn outputs_are_compared_without_what_differs() {
    let output =
        "urscope: on\nerror: x\n  here +12.5 ms app (pid 77), thread 78, call 3 at 0x7f00 (/r/a/b.c:3)\nthe end\n";
    let same = |shown: &[&str]| is_as_shown(shown, output, &[Path::new("/r")]);
    assert!(same(&["…", "error: x", "here +1 s app (pid 1), thread 2,", "call 3 at 0x1 (a/b.c:3)", "the end"]));
    assert!(same(&["urscope: on", "…", "here +0.1 us app (pid 5), thread 5,", "…", "the end"]));
    assert!(!same(&["error: x", "…"]), "the beginning is left out");
    assert!(!same(&["…", "error: x"]), "the end is left out");
    assert!(!same(&["…", "(a/b.c:4)", "the end"]), "another line");
    assert!(!same(&["…", "call 4 at 0x1", "…"]), "another call");
    assert_eq!(options("`urscope check --output junit=x -- --no`"), Some(("check", vec!["--output"])));
    assert_eq!(options("an urscope --report"), None);
}
