//! No test is ignored: a test that cannot run here fails and says why.

use std::fs;

use urscope_tests::{files_with, repository};

#[test]
fn no_test_is_ignored() {
    let files = files_with("rs", &repository());
    assert!(files.len() > 20, "the sources were not found");
    // In two pieces, or this file would find itself.
    let attributes = [concat!("#[", "ignore"), concat!(", ", "ignore)]")];
    for file in files {
        let text = fs::read_to_string(&file).expect("a source can be read");
        for attribute in attributes {
            assert!(!text.contains(attribute), "{} leaves out a test", file.display());
        }
    }
}

/// rustdoc takes seconds to find the tests of a crate, so it looks at those that have some.
#[test]
fn only_the_shim_has_tests_in_its_documentation() {
    let is_example = |line: &str| {
        let text = line.trim_start();
        let comment = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        let info = comment.and_then(|comment| comment.trim_start().strip_prefix("```")).map(str::trim);
        info.is_some_and(|info| {
            ["rust", "compile_fail", "no_run", "should_panic"].iter().any(|it| info.starts_with(it))
        })
    };
    let with_examples = |file: &std::path::PathBuf| {
        let text = fs::read_to_string(file).expect("a source can be read");
        // A fence without a word begins an example, too, so each opened one has a word.
        let fences = text.lines().filter(|line| {
            let text = line.trim_start();
            ["/// ```", "//! ```"].iter().any(|fence| text.starts_with(fence))
        });
        text.lines().any(is_example) || fences.step_by(2).any(|opened| opened.trim_end().ends_with("```"))
    };
    let found: Vec<_> = files_with("rs", &repository()).into_iter().filter(with_examples).collect();
    assert_eq!(found, [repository().join("shim/src/backend/mod.rs")], "give their crates `doctest = true`");
}
