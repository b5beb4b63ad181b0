//! Each sin is found for what it is, and nothing else is found with it, on both adapters.

use urscope_tests::{Adapter, Release, Trial};

/// Runs a program and compares what is found, as "severity rule".
fn finds(app: &str, adapter: Adapter, expected: &[&str]) {
    let outcome = Trial::of(app, Release::R2026_2, adapter).run();
    let report = outcome.report();
    assert_eq!(report.sins(), expected, "{report:#?}");
    for finding in report.findings() {
        report.process(finding["process"]["pid"].as_u64().expect("a finding names its process"));
        assert!(finding["message"].as_str().is_some_and(|message| !message.is_empty()), "{finding:#?}");
        assert!(finding["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{finding:#?}");
    }
    // A note is no reason to fail.
    let fails = expected.iter().any(|sin| !sin.starts_with("note"));
    assert_eq!((outcome.code, report.verdict()), if fails { (1, "findings") } else { (0, "clean") });
}

macro_rules! sins {
    ($($name:ident: $app:literal, $expected:expr;)*) => {
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

sins! {
    a_handle_that_is_never_put: "leaked_handle", ["warning leaked-handle"];
    a_mapping_that_is_never_closed: "leaked_mapping", ["warning leaked-mapping"];
    a_handle_that_is_put_twice: "double_put", ["error double-put"];
    a_put_of_an_unknown_handle: "put_of_unknown", ["error put-of-unknown"];
    a_mapping_that_is_closed_twice: "double_close", ["error double-close"];
    a_close_of_an_unknown_pointer: "close_of_unknown", ["error close-of-unknown"];
    a_close_of_an_interior_pointer: "close_interior", ["error open-close-mismatch"];
    a_close_in_another_context: "close_wrong_context", ["error open-close-mismatch"];
    a_mapping_that_is_given_to_free: "close_by_free", ["error open-close-mismatch"];
    memory_that_is_freed_while_another_has_it_open: "free_while_open", ["error freed-while-open"];
    memory_that_is_freed_before_its_put: "free_before_put", ["note freed-while-exported"];
}

/// The other process of a sin between two is named.
#[test]
fn the_process_on_the_other_side_is_named() {
    let report = Trial::of("free_while_open", Release::R2026_2, Adapter::V2).run().report();
    let finding = report.finding("freed-while-open");
    let [one, other] = ["process", "other"].map(|side| finding[side]["pid"].as_u64().expect("both sides are named"));
    assert_ne!(one, other);
    report.process(one);
    report.process(other);
}

/// `--fail-on` moves the line between what fails and what does not.
#[test]
fn a_note_fails_only_when_asked_for() {
    let run = |severity: &str| {
        Trial::of("free_before_put", Release::R2026_2, Adapter::V2).option("--fail-on").option(severity).run().code
    };
    assert_eq!((run("error"), run("warning"), run("note")), (0, 0, 1));
}
