//! `urscope example`: each program is written, compiled and run as a user does it, and its mistake is found at its
//! line.

use std::process::Command;

use urscope_tests::{Release, artefacts, repository};

/// The programs, with the severity of what is found and a text of the line where it is.
const EXAMPLES: [(&str, &str, [&str; 2]); 4] = [
    ("freed-while-open", "error", ["del memory, handle", "sycl::free(memory, gpu);"]),
    ("leaked-mapping", "warning", ["memory = producer.recv().map()", "void *memory = ipc::open("]),
    ("use-after-free", "error", ["received.map().close()", "ipc::close(ipc::open("]),
    ("use-after-put", "warning", ["received.map().close()", "ipc::close(ipc::open("]),
];

/// Those that are right with the argument `right`: the file, what is found otherwise, and a text of the line where it
/// is.
const OTHERS: [(&str, &str, &str, &str); 3] = [
    ("ranks", "ranks.cpp", "freed-while-open", "if (!right) sycl::free(memory, gpu);"),
    ("cuda", "cuda.c", "freed-while-open", "if (!right) check(cuMemFree_v2(memory)"),
    ("level-zero", "level_zero.c", "double-close", "if (!right) zeMemCloseIpcHandle("),
];

/// The command, in an environment as `pip install 'urscope[dpctl]'` makes it.
fn example(folder: &std::path::Path, arguments: &[&str]) -> (i32, String) {
    let python = Release::R2026_2.folder().join("bin");
    let path = std::env::join_paths(
        [python].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new(artefacts::command());
    command.arg("example").args(arguments).current_dir(folder).env("PATH", path.expect("paths without colons"));
    let ended = command.env("PYTHONPATH", repository().join("python")).output().expect("urscope runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    (ended.status.code().unwrap_or(-1), said)
}

#[test]
fn each_mistake_is_found_at_its_line_in_both_languages() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = example(folder.path(), &[]);
    let others = OTHERS.iter().map(|(name, ..)| *name).chain(["clean"]);
    let mut known: Vec<&str> = EXAMPLES.iter().map(|(rule, ..)| *rule).chain(others).collect();
    let mut listed: Vec<&str> = list.1.lines().filter_map(|line| line.split(' ').next()).collect();
    known.sort_unstable();
    listed.sort_unstable();
    assert_eq!((list.0, listed), (0, known), "{list:?}");
    for (rule, severity, lines) in EXAMPLES {
        for (language, ending, line) in [("--python", "py", lines[0]), ("--cpp", "cpp", lines[1])] {
            let (code, said) = example(folder.path(), &["--run", language, rule]);
            assert_eq!(code, 1, "{rule} {language}: {said}");
            let file = format!("{}.{ending}", rule.replace('-', "_"));
            let source = std::fs::read_to_string(folder.path().join(&file)).expect("the program was written");
            let number = 1 + source.lines().position(|text| text.contains(line)).expect("the line of the mistake");
            let headline = said.lines().find(|line| line.starts_with("urscope: ")).unwrap_or_default();
            assert!(headline.ends_with(&format!(": {file}:{number}")), "{rule} {language}: {said}");
            assert!(said.contains(&format!("\n{severity}: {rule} in ")), "{rule} {language}: {said}");
            assert!(
                said.contains(&format!("{number} | {}", source.lines().nth(number - 1).unwrap_or_default())),
                "{said}"
            );
        }
    }
    // A program that the user has changed is kept.
    std::fs::write(folder.path().join("use_after_put.py"), "mine").expect("the folder can be written");
    let (code, said) = example(folder.path(), &["use-after-put"]);
    assert!(code == 2 && said.contains("use_after_put.py is something else than the example"), "{code}: {said}");
}

#[test]
fn each_interface_and_ranks_have_a_program_that_is_right_and_wrong() {
    // A link by the compiler and a program must work there, too.
    let folder = tempfile::Builder::new().prefix("my programs").tempdir().expect("a temporary folder");
    for (name, file, rule, line) in OTHERS {
        let (code, said) = example(folder.path(), &[name]);
        let right = said.lines().last().unwrap_or_default();
        assert!(code == 0 && right.ends_with(" right  # without the mistake"), "{code}: {said}");
        let source = std::fs::read_to_string(folder.path().join(file)).expect("the program was written");
        let number = 1 + source.lines().position(|text| text.contains(line)).expect("the line of the mistake");
        let (code, said) = example(folder.path(), &["--run", name]);
        let headline = said.lines().find(|line| line.starts_with("urscope: ")).unwrap_or_default();
        assert!(code == 1 && headline.ends_with(&format!(": {file}:{number}")), "{code}: {said}");
        assert!(said.contains(&format!("\nerror: {rule} in ")), "{said}");
        let (code, said) = example(folder.path(), &["--run", name, "right"]);
        assert!(code == 0 && said.contains("\nurscope: clean (2 processes, "), "{code}: {said}");
    }
    for language in ["--python", "--cpp"] {
        let (code, said) = example(folder.path(), &["--run", language, "clean"]);
        assert!(code == 0 && said.contains("\nurscope: clean (2 processes, "), "{code}: {said}");
    }
    let (code, said) = example(folder.path(), &["cuda", "--cpp"]);
    assert!(code == 2 && said.contains("cuda is not in this language, but as *.c"), "{code}: {said}");
}

/// Beside the tarball or the Debian package, the package is in no environment.
#[test]
fn the_python_package_is_found_beside_the_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut path = vec![Release::R2026_2.folder().join("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(artefacts::command());
        command.args(arguments).current_dir(folder.path()).env_remove("PYTHONPATH");
        command.env("PATH", std::env::join_paths(&path).expect("paths without colons"));
        let ended = command.output().expect("urscope runs");
        let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        (ended.status.code().unwrap_or(-1), said)
    };
    let python = repository().join("python").display().to_string();
    assert_eq!(run(&["env", "--python"]), (0, format!("{python}\n")));
    assert!(run(&["example", "clean"]).1.contains(&format!("\n$ PYTHONPATH={python} urscope run ")));
    let (code, said) = run(&["example", "--run", "clean"]);
    assert!(code == 0 && said.contains("\nurscope: clean (2 processes, "), "{code}: {said}");
    let library = artefacts::command().with_file_name("liburscope.so").display().to_string();
    assert_eq!(run(&["env", "--preload"]), (0, format!("{library}\n")));
}
