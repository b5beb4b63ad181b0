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
