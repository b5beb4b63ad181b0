//! A finding names the source lines of the violation and of the call that it refers to.

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, repository, run};

fn double_close(adapter: Adapter) -> Outcome {
    TestRun::new("mistakes double_close", Release::R2026_2, adapter).run()
}

/// The lines of the program in a stack, innermost first.
fn lines(side: &Value) -> Vec<u64> {
    let frames = side["stack"].as_array().expect("a stack").iter();
    let own = frames.filter(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with("mistakes.cpp")));
    own.filter_map(|frame| frame["line"].as_u64()).collect()
}

fn closing_lines() -> Vec<u64> {
    let source = std::fs::read_to_string(repository().join("tests/apps/mistakes.cpp")).expect("the source");
    let lines = (1..).zip(source.lines()).skip_while(|(_, line)| !line.starts_with("CONSUMER(double_close)"));
    let lines = lines.skip(1).take_while(|(_, line)| *line != "}");
    lines.filter(|(_, line)| line.contains("close(")).map(|(number, _)| number).collect()
}

#[test]
fn a_finding_names_the_lines_of_both_places() {
    let closes = closing_lines();
    assert_eq!(closes.len(), 2, "the app closes in two lines");
    for adapter in [Adapter::V1, Adapter::V2] {
        let report = double_close(adapter).report();
        let finding = report.finding("double-close");
        assert_eq!(lines(&finding["process"]).first(), closes.get(1), "{finding:#?}");
        assert_eq!(lines(&finding["other"]).first(), closes.first(), "{finding:#?}");
    }
}

/// On another machine the program is in another place, or missing.
#[test]
fn a_copy_of_the_program_provides_the_lines() {
    // Only in the Chrome form a path can be replaced by a longer one.
    let test_run = TestRun::new("mistakes double_close", Release::R2026_2, Adapter::V2);
    let outcome = test_run.env("URSCOPE_FORMAT", "chrome").run();
    let folder = tempfile::tempdir().expect("no temporary folder");
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("no folder for the traces");
    for file in outcome.trace_files() {
        let text = std::fs::read_to_string(&file).expect("a trace");
        let moved = text.replace("/mistakes\",\"build_id\"", "/moved/mistakes\",\"build_id\"");
        assert_ne!(moved, text, "the program is among the modules");
        std::fs::write(traces.join(file.file_name().expect("a name")), moved).expect("no file for a trace");
    }
    let program = urscope_tests::apps::executable("mistakes", Release::R2026_2);
    let copies = program.parent().expect("a folder").to_str().expect("a path in UTF-8");
    let judged = |options: &[&str]| {
        let arguments =
            [&["check", "--format", "json"], options, &[traces.to_str().expect("a path in UTF-8")]].concat();
        let ended = run::urscope(&arguments);
        let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
        lines(&report["findings"][0]["process"])
    };
    assert_eq!(judged(&[]), Vec::<u64>::new());
    assert_eq!(judged(&["--symbols", copies]).first(), closing_lines().get(1));
}

#[test]
fn stacks_can_be_switched_off() {
    let test_run = TestRun::new("mistakes double_close", Release::R2026_2, Adapter::V2).env("URSCOPE_STACKS", "0");
    let report = test_run.run().report();
    assert_eq!(report.finding("double-close")["process"]["stack"], serde_json::json!([]));
}
