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
    assert_eq!((list.0, list.1.lines().count()), (0, EXAMPLES.len()), "{list:?}");
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
