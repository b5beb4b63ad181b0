//! What a real run gives to a CI server: reports in all formats, and suppressions and a baseline for the next run.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use urscope_tests::{Adapter::V2, Outcome, Release, Report, TestRun, apps};

fn test_run(app: &str) -> TestRun {
    TestRun::new(app, Release::R2026_2, V2)
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("a path in UTF-8").to_owned()
}

/// How many findings are not excused.
fn counting(outcome: &Outcome) -> usize {
    outcome.report().findings().iter().filter(|finding| finding["excuse"].is_null()).count()
}

#[test]
fn a_run_is_reported_in_all_formats_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let forms = ["text", "json", "sarif", "junit", "html", "github"];
    let test_run = forms.into_iter().fold(test_run("free_while_open"), |test_run, form| {
        test_run.option("--output").option(format!("{form}={}", path(&folder, form)))
    });
    let outcome = test_run.run();
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let written = |form: &str| fs::read_to_string(folder.path().join(form)).expect("a report was written");
    for form in forms {
        assert!(written(form).contains("freed-while-open"), "{form}: {}", written(form));
    }
    Report::parse(&written("json"));

    let log: Value = serde_json::from_str(&written("sarif")).expect("SARIF is JSON");
    let source = fs::read_to_string(apps::source("free_while_open.cpp")).expect("a source can be read");
    let result = &log["runs"][0]["results"][0];
    let place = &result["stacks"][0]["frames"];
    let frames = place.as_array().expect("frames").iter().map(|frame| &frame["location"]["physicalLocation"]);
    let of_app = |place: &&Value| {
        place["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("/free_while_open.cpp"))
    };
    let line = frames.clone().find(of_app).expect("a frame of the program")["region"]["startLine"].as_u64();
    let text = source.lines().nth(line.expect("a line") as usize - 1).expect("the line is in the file");
    assert!(text.contains("free("), "line {line:?} of free_while_open.cpp is {text:?}");
    assert_eq!(result["stacks"].as_array().map(Vec::len), Some(2), "both sides have a stack: {result:#}");
    assert!(written("github").contains("\n::error file="), "{}", written("github"));
    // Each begins with what happened.
    let sentence = "producer freed 8 MiB while consumer had it open: free_while_open.cpp:14".to_owned();
    let begins = |text: &str| text.lines().next().is_some_and(|line| line.contains(&sentence));
    assert!(begins(&written("text")) && begins(&written("github")), "{}", outcome.stderr);
    let json: Value = serde_json::from_str(&written("json")).expect("the report is JSON");
    assert!(json["headline"].as_str().is_some_and(begins));
    let message = result["message"]["text"].as_str().unwrap_or_default();
    assert!(
        begins(message) && written("html").contains(&sentence) && written("junit").contains(&sentence),
        "{message}"
    );
    let last = outcome.stderr.lines().last().unwrap_or_default();
    assert!(last.contains(&sentence) && last.contains("; `urscope view "), "{last}");
}

#[test]
fn written_suppressions_hold_in_the_next_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for app in ["mistakes leaked_handle", "free_while_open"] {
        let file = path(&folder, app);
        let first = test_run(app).option("--write-suppressions").option(&file).run();
        assert_eq!((first.code, first.report().verdict()), (1, "findings"));
        let written = fs::read_to_string(&file).expect("suppressions were written");
        let second = test_run(app).option("--suppressions").option(&file).run();
        assert_eq!((second.code, second.report().verdict()), (0, "clean"), "{written}");
        assert_eq!(counting(&second), 0, "{written}");
        let names_a_function = |line: &str| line.contains(":here=^ur") && line.contains("$ <- ^main in ");
        assert!(written.lines().any(names_a_function), "{written}");
    }
}

#[test]
fn a_baseline_excuses_what_was_found_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = path(&folder, "main.json");
    let first = test_run("free_while_open").option("--output").option(format!("json={file}")).run();
    assert_eq!(first.code, 1);
    let same = test_run("free_while_open").option("--baseline").option(&file).run();
    assert_eq!((same.code, counting(&same)), (0, 0), "{:#?}", same.report());
    let other = test_run("mistakes leaked_handle").option("--baseline").option(&file).run();
    assert_eq!((other.code, counting(&other)), (1, 1), "{:#?}", other.report());
}

#[test]
fn a_suppression_that_cannot_be_read_stops_the_run_before_it_begins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = path(&folder, "known.txt");
    fs::write(&file, "# known\nleaked-handel:main\n").expect("a file can be written");
    let ended = urscope_tests::run::urscope(&["run", "--suppressions", &file, "--", "/bin/echo", "it ran"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("{file}:2: no rule has the name")), "{}", ended.stderr);
}
