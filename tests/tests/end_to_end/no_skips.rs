//! No test is ignored: a test that cannot run here fails and says why.

use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository can be listed") {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_test_is_ignored() {
    let mut files = Vec::new();
    rust_files(&urscope_tests::repository(), &mut files);
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
