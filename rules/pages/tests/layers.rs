//! The layers inside the rules crate: the tracker knows no rule and no checker, the life cycle knows neither.

#![allow(clippy::unwrap_used, reason = "this is test code: a panic is how it reports")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file or folder of `rules/src`, and the modules of the crate that nothing in it may name.
const MUST_NOT_NAME: [(&str, &[&str]); 4] = [
    ("lifecycle.rs", &["catalog", "checker", "finding", "tracker"]),
    ("finding.rs", &["catalog"]),
    ("tracker", &["catalog", "checker"]),
    ("tracker/transitions", &["catalog", "checker"]),
];

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.flat_map(|entry| sources(&entry.unwrap().path())).collect()
}

/// Whether code names a module of the crate: by its whole path, or in a list of imports from the crate's root.
fn names(code: &str, module: &str) -> bool {
    let direct = code.contains(&format!("crate::{module}"));
    let lists = code.split("crate::{").skip(1);
    let listed = lists.into_iter().any(|rest| {
        let list = rest.split("};").next().unwrap_or(rest);
        list.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .any(|path| path.trim_matches(':') == module || path.starts_with(&format!("{module}::")))
    });
    direct || listed
}

#[test]
fn no_layer_of_the_rules_names_a_higher_one() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    for (layer, higher) in MUST_NOT_NAME {
        for file in sources(&source.join(layer)) {
            let text = fs::read_to_string(&file).unwrap();
            let code: String =
                text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            for module in higher {
                assert!(!names(&code, module), "{} names crate::{module}", file.display());
            }
        }
    }
}

#[test]
fn a_name_is_found_wherever_it_may_stand() {
    assert!(names("use crate::catalog::RULES;", "catalog"));
    assert!(names("use crate::{\n    catalog::{self, When},\n    finding::Finding,\n};", "catalog"));
    assert!(names("use crate::{finding::Finding, checker};", "checker"));
    assert!(!names("use crate::{finding::Finding, tracker::Map};", "checker"));
}
