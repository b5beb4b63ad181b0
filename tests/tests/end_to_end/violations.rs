//! Each violation is reported by its rule, and nothing else is reported, on both adapters.

use serde_json::Value;
use urscope_tests::Adapter::{self, V1, V2};
use urscope_tests::{Outcome, Release, TestRun, apps, hunt::Script, run};

use crate::{circumstances, closed_twice, cuda, level_zero, missing_results, museum};

/// Runs a program and compares what is found, as "severity rule".
fn finds(app: &str, adapter: Adapter, expected: &[&str]) {
    let outcome = TestRun::new(app, Release::R2026_2, adapter).run();
    is_found(&outcome, expected);
    let live = outcome.traces().iter().any(|trace| trace.records.iter().any(|record| record["name"] == "finding"));
    assert!(run::is_validated() || !live, "validation should be off: {}", outcome.stderr);
}

fn is_found(outcome: &Outcome, expected: &[&str]) {
    let report = outcome.report();
    assert_eq!(report.violations(), expected, "{report:#?}");
    for finding in report.findings() {
        report.process(finding["process"]["pid"].as_u64().expect("a finding names its process"));
        assert!(finding["message"].as_str().is_some_and(|message| !message.is_empty()), "{finding:#?}");
        assert!(finding["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{finding:#?}");
    }
    // A note does not fail a run, and a run in which a process died is not clean.
    let fails = expected.iter().any(|violation| !violation.starts_with("note"));
    let has_died = report.processes().iter().any(|process| process["signal"].is_string());
    let otherwise = if has_died { (2, "partly-judged") } else { (0, "clean") };
    assert_eq!((outcome.code, report.verdict()), if fails { (1, "findings") } else { otherwise });
}

macro_rules! violations {
    ($($name:ident: $app:literal, $expected:expr;)*) => {
        const FOUND: &[&[&str]] = &[$(&$expected),*];

        $(mod $name {
            use super::{Adapter, finds};

            #[test]
            fn on_v1() {
                finds($app, Adapter::V1, &$expected);
            }

            #[test]
            fn on_v2() {
                finds($app, Adapter::V2, &$expected);
            }
        })*
    };
}

violations! {
    a_handle_that_is_never_put: "mistakes leaked_handle", ["warning leaked-handle"];
    a_mapping_that_is_never_closed: "mistakes leaked_mapping", ["warning leaked-mapping"];
    a_handle_that_is_put_twice: "mistakes double_put", ["error double-put"];
    a_mapping_that_is_closed_twice: "mistakes double_close", ["error double-close"];
    a_mapping_that_a_copy_still_reads: "mistakes close_in_use", ["error closed-while-in-use", "error race"];
    freed_memory_that_a_copy_still_writes: "mistakes free_in_use", ["error freed-while-in-use"];
    a_mapping_that_is_given_to_free: "mistakes close_by_free", ["error open-close-mismatch"];
    memory_that_is_freed_while_another_has_it_open: "free_while_open", ["error freed-while-open"];
    memory_that_is_freed_while_an_idle_process_has_it_open: "mistakes idle_consumer_killed", ["error freed-while-open", "note leaked-mapping"];
    memory_that_is_opened_twice_from_the_same_bytes: "mistakes reopened_buffer", ["error freed-while-open"];
}

/// Checks that a finding names a process and a call that are in the traces, and the only line of the program with
/// `text`.
pub(crate) fn is_at(outcome: &Outcome, app: &str, finding: &Value, text: &str) {
    let place = &finding["process"];
    let traces = outcome.traces();
    let its_own = traces.iter().find(|trace| place["pid"] == trace.pid()).expect("a process that has a trace");
    // The calls of a process are numbered in their order.
    let number = finding["call"].as_u64().expect("a finding in a call") as usize;
    let call = its_own.calls("B").nth(number - 1);
    assert_eq!(call.map(|call| &call["name"]), Some(&finding["function"]), "{finding:#?}");
    let app = app.split(' ').next().unwrap_or_default();
    let file = if app.contains('.') { app.to_owned() } else { format!("{app}.cpp") };
    let line = apps::line_of(&file, text);
    let file = format!("/{file}");
    let here = |frame: &Value| frame["file"].as_str().is_some_and(|it| it.ends_with(&file)) && frame["line"] == line;
    assert!(
        place["stack"].as_array().is_some_and(|frames| frames.iter().any(here)),
        "not in line {line}: {finding:#?}"
    );
}

const DOUBLE_RELEASE: &str = "error double-release";
const NEVER_SIGNALLED: [&str; 3] = ["note leaked-handle", "note never-signalled", "warning leaked-event"];

/// Both processes end in the middle of their work, so the handle data and the opened event are left, too.
#[test]
fn a_wait_for_an_event_that_no_process_is_left_to_signal() {
    for (case, other) in [("", "made the event and shared it"), ("of_maker ", "opened the event")] {
        let outcome = TestRun::new(&format!("never_signalled {case}"), Release::R2026_2, V2).run();
        is_found(&outcome, &NEVER_SIGNALLED);
        assert!(outcome.stdout.lines().any(|line| line == "consumer gives up"), "{}{}", outcome.stdout, outcome.stderr);
        let report = outcome.report();
        let finding = report.finding("never-signalled");
        is_at(&outcome, "never_signalled", finding, "event.wait()");
        assert!(finding["message"].as_str().is_some_and(|message| message.contains(other)), "{finding}");
        is_found(&TestRun::new(&format!("never_signalled {case}fixed"), Release::R2026_2, V2).run(), &[]);
    }
}

/// Each program and its case, what is found, at which line, and the answer of each adapter that supports the functions.
type UrCase = (&'static str, &'static str, &'static str, &'static [(Adapter, &'static str)]);

#[rustfmt::skip]
const UR_CASES: [UrCase; 8] = [
    ("ur_event only get-of-an-imported-event", "error export-of-import", "answers << imported.get(again);", &[(V2, "12")]),
    ("ur_physical only get-without-the-flag", "error export-without-flag", "get-without-the-flag", &[(V1, "44 untouched"), (V2, "45 untouched")]),
    ("ur_event only get-of-an-unshared-event", "error export-without-flag", "get-of-an-unshared-event", &[(V2, "12 untouched")]),
    ("ur_event only open-after-put", "note use-after-put", "return urIPCOpenEventHandleExp(", &[(V2, "0 0")]),
    ("ur_violations put_as_an_event", "error wrong-kind", "put as an event's", &[(V2, "0")]),
    ("ur_physical only close-of-memory-never-opened", "warning close-of-unknown", CLOSE, &[(V1, "44"), (V2, "0")]),
    ("ur_physical only put-after-release", "note freed-while-exported", "urPhysicalMemRelease(std::exchange(", &[(V2, "0 0")]),
    ("ur_event only put-after-release", "note freed-while-exported", "urEventRelease(std::exchange(", &[(V2, "0 0")]),
];

const CLOSE: &str = "return urIPCClosePhysMemHandleExp(";

/// Runs a case, whose name is in front of what it prints.
fn finds_in_case(test_run: TestRun, case: &str, expected: &str, text: &str, answer: &str) {
    let outcome = test_run.run();
    is_found(&outcome, &[expected]);
    assert!(outcome.stdout.lines().any(|line| line.ends_with(&format!(": {answer}"))), "{case}: {}", outcome.stdout);
    for finding in outcome.report().findings() {
        is_at(&outcome, case, finding, text);
    }
}

#[test]
fn violations_that_sycl_prevents_are_found_in_programs_that_call_unified_runtime() {
    for (case, expected, text, answers) in UR_CASES {
        for (adapter, answer) in answers {
            finds_in_case(TestRun::new(case, Release::R2026_2, *adapter), case, expected, text, answer);
        }
    }
}

#[test]
fn another_kind_and_own_memory_are_refused_on_request() {
    for (case, expected, text) in [
        ("ur_violations put_as_an_event", "error wrong-kind", "put as an event's"),
        ("ur_physical only close-of-memory-never-opened", "warning close-of-unknown", CLOSE),
    ] {
        let test_run = TestRun::new(case, Release::R2026_2, V2).env("URSCOPE_VALIDATE", "on");
        finds_in_case(test_run.env("URSCOPE_ON_ERROR", "refuse"), case, expected, text, "45");
    }
}

/// With a single adapter, so that only urscope reads a handle whose object is gone.
#[test]
fn physical_memory_that_is_released_once_too_often_is_found_and_refused() {
    let library = Release::R2026_2.library("libur_adapter_level_zero_v2.so.0");
    let case = "ur_violations second_release";
    let test_run = TestRun::new(case, Release::R2026_2, V2);
    let test_run =
        test_run.env("UR_ADAPTERS_FORCE_LOAD", library).env("URSCOPE_VALIDATE", "on").env("URSCOPE_ON_ERROR", "refuse");
    finds_in_case(test_run, case, DOUBLE_RELEASE, "print(\"second release", "45");
}

/// What is left in a context is reported at its release, not at the end of the process.
#[test]
fn the_release_of_a_context_leaves_what_was_opened_or_got_in_it() {
    let outcome = TestRun::new("ur_violations", Release::R2026_2, V2).arg("imports_behind_their_context").run();
    is_found(&outcome, &["warning leaked-event", "warning leaked-physical-memory"]);
    let report = outcome.report();
    is_at(&outcome, "ur_violations", report.finding("leaked-event"), "urIPCOpenEventHandleExp(context,");
    is_at(&outcome, "ur_violations", report.finding("leaked-physical-memory"), "urIPCOpenPhysMemHandleExp(context,");
    let [memory, mapping] = ["leaked-handle", "leaked-mapping"].map(|rule| {
        let app = format!("mistakes {}", rule.replace('-', "_"));
        let report = TestRun::new(&app, Release::R2026_2, V2).run().report();
        report.finding(rule)["message"].as_str().expect("a message").to_owned()
    });
    for rule in ["leaked-event", "leaked-physical-memory"].map(|rule| report.finding(rule)["message"].to_string()) {
        assert!(rule.contains(", and its context was released in call "), "{rule}");
    }
    for message in [memory, mapping] {
        assert!(message.contains(", and its context was released in call "), "{message}");
    }
}

/// A violation between two processes names both.
#[test]
fn the_process_on_the_other_side_is_named() {
    let report = TestRun::new("free_while_open", Release::R2026_2, V2).run().report();
    let finding = report.finding("freed-while-open");
    let [one, other] = ["process", "other"].map(|side| finding[side]["pid"].as_u64().expect("both sides are named"));
    assert_ne!(one, other);
    report.process(one);
    report.process(other);
}

/// What a scenario with a mistake prints of the step that an adapter may refuse.
#[test]
fn the_adapters_refuse_what_they_refuse_without_urscope() {
    for (scenario, adapters, printed) in [
        ("put_null", &[V1, V2][..], "p: put null may-fail"),
        ("get_of_opened", &[V1, V2], "consumer: get m -> g may-fail: refused"),
        ("physical_use_after_put", &[V2], "consumer: open-physical h -> m may-fail: refused"),
    ] {
        for adapter in adapters {
            let outcome = TestRun::new(&format!("scenario {scenario}"), Release::R2026_2, *adapter).run();
            assert!(outcome.stdout.lines().any(|line| line == printed), "{scenario}: {}", outcome.stdout);
        }
    }
}

#[test]
fn a_refused_open_says_that_its_exporter_was_killed() {
    let report = TestRun::new("scenario open_of_ended", Release::R2026_2, V2).run().report();
    let message = report.finding("refused-open")["message"].as_str().expect("a message");
    assert!(message.contains("had been killed"), "{message}");
}

/// `--fail-on` sets the severity from which a run fails.
#[test]
fn a_note_fails_only_when_asked_for() {
    let run = |severity: &str| {
        TestRun::new("scenario free_before_put", Release::R2026_2, V2).option("--fail-on").option(severity).run().code
    };
    assert_eq!((run("error"), run("warning"), run("note")), (0, 0, 1));
}

/// Rules that no program breaks, and why.
const BY_NO_PROGRAM: [(&str, &str); 2] = [
    ("calls-lost", "a full disk and a damaged file lose calls; a program does not"),
    ("no-calls-seen", "it is the verdict where there is no call"),
];

/// Everything that some test of this crate expects, as "severity rule".
fn found_by_a_test() -> Vec<String> {
    let here = [&[DOUBLE_RELEASE][..], &NEVER_SIGNALLED];
    let elsewhere = [&circumstances::EXPECTED[..], &closed_twice::EXPECTED, &missing_results::EXPECTED];
    let in_ur = UR_CASES.iter().map(|(_, expected, ..)| expected);
    let at_level_zero = level_zero::CASES.iter().flat_map(|(_, expected)| *expected);
    let in_the_museum = museum::EXHIBITS.iter().map(|exhibit| &exhibit.found);
    let lists = FOUND.iter().copied().chain(here).chain(elsewhere).flatten();
    let of_cuda = cuda::cases().flat_map(|(_, found)| found).map(str::to_owned);
    let by_programs = lists.chain(in_ur).chain(at_level_zero).chain(in_the_museum).map(|found| (*found).to_owned());
    by_programs.chain(of_cuda).chain(Script::all(&apps::source("mistakes")).iter().flat_map(Script::expected)).collect()
}

#[test]
fn every_rule_is_broken_by_a_program_or_has_a_reason() {
    let listed = run::urscope(&["explain"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let words = listed.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_rule = |words: &Vec<&str>| words.get(1).is_some_and(|word| ["note", "warning", "error"].contains(word));
    let rules: Vec<&str> = words.filter(is_rule).map(|words| words[0]).collect();
    assert!(rules.len() > 35, "{rules:?}");
    let found = found_by_a_test();
    let found: Vec<&str> = found.iter().filter_map(|found| Some(found.split_once(' ')?.1)).collect();
    for rule in &found {
        assert!(rules.contains(rule), "a test expects {rule}, which is no rule");
    }
    let left: Vec<&str> = rules.into_iter().filter(|rule| !found.contains(rule)).collect();
    assert_eq!(left, BY_NO_PROGRAM.map(|(rule, _)| rule));
}
