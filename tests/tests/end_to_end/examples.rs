//! The examples on the pages of the rules, as `urscope explain` prints them: code that compiles, and both columns on a
//! terminal.

use std::{fmt::Write as _, fs, process::Command};

use urscope_tests::{Release, artefacts, level_zero_loader, repository, run};

/// What `urscope explain` prints where standard output is no terminal.
fn explained(arguments: &[&str]) -> String {
    let ended = run::urscope(&[&["explain"], arguments].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    ended.stdout
}

/// The names of all rules.
pub(crate) fn rules() -> Vec<String> {
    let list = explained(&[]);
    let rules: Vec<_> = list.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert!(rules.len() > 40, "{rules:?}");
    rules
}

/// The blocks of code in a language in the example of a rule.
fn code(rule: &str, language: &str) -> Vec<String> {
    let page = explained(&[rule]);
    let (_, example) = page.split_once("\n# Example\n").unwrap_or_else(|| panic!("{rule} has no example"));
    let example = example.split("\n# ").next().unwrap_or_default();
    let fence = format!("```{language}\n");
    example.split(&fence).skip(1).map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// Each is the body of a function of one program. What they take as given is declared in `examples.hpp`.
#[test]
fn every_example_compiles() {
    let mut program = String::from("#include \"examples.hpp\"\nnamespace example {\n");
    let mut compiled = 0;
    for rule in rules() {
        for code in code(&rule, "cpp") {
            compiled += 1;
            writeln!(program, "void example_{compiled}() {{\n#line 1 \"{rule}\"\n{code}}}").unwrap();
        }
    }
    program.push_str("}\n");
    assert!(compiled > 80, "{compiled}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("examples.cpp");
    fs::write(&source, program).expect("a file can be written");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]);
    compiler.arg("-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING").arg("-I").arg(repository().join("tests/apps"));
    let include = Release::R2026_2.folder().join("include");
    for headers in [include.join("sycl"), include.join("unified-runtime"), include, level_zero_loader()] {
        compiler.arg("-isystem").arg(headers);
    }
    let output = compiler.arg(&source).output().expect("g++ can be started");
    let why = "a block is the body of a function, and tests/apps/examples.hpp declares what it may use";
    assert!(output.status.success(), "{why}:\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_line_of_an_example_is_one() {
    let lines: Vec<_> = rules().iter().flat_map(|rule| code(rule, "sh")).collect();
    assert_eq!(lines.len() % 2, 0, "{lines:#?}");
    assert!(!lines.is_empty());
    for line in lines {
        let output = Command::new("sh").args(["-n", "-c", &line]).output().expect("a shell can be started");
        assert!(output.status.success(), "{line}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// `script` (util-linux) provides the terminal.
#[test]
fn a_terminal_shows_the_wrong_and_the_fixed_code() {
    let on_a_terminal = |columns: usize, options: &str| {
        let command = artefacts::command();
        let shown = format!("stty cols {columns}; exec {} explain {options} double_put", command.display());
        let output = Command::new("script")
            .args(["-q", "-e", "-c", &shown, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .output()
            .expect("script can be started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    };
    let wide = on_a_terminal(100, "");
    assert!(wide.contains("\n\x1b[1mExample\x1b[0m\n") && !wide.contains("```"), "{wide}");
    let both = wide.lines().find(|line| line.contains("Wrong:")).unwrap_or_else(|| panic!("{wide}"));
    assert!(both.contains("Fixed:"), "{wide}");
    let narrow = on_a_terminal(60, "");
    assert!(narrow.lines().any(|line| line == "  Fixed:") && !narrow.contains("Wrong:\x1b"), "{narrow}");
    let markdown = on_a_terminal(100, "--format markdown");
    assert_eq!(markdown, explained(&["double-put"]));
    assert!(markdown.contains("\n```cpp\n"), "{markdown}");
}
