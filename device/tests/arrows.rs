//! The layers of the crate: each module uses its own layer and those before it in the list in `src/lib.rs`, no others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// What every layer may use of the crate root: the table of functions, which is a macro.
const ROOT: [&str; 1] = ["ze_functions"];

/// The layers, lowest first, as the documentation in `src/lib.rs` lists them.
fn layers(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("lib.rs")).unwrap();
    let items = text.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once(". `"));
    let numbered = items.filter_map(|(number, rest)| Some((number.parse::<usize>().ok()?, rest.split_once('`')?.0)));
    numbered
        .enumerate()
        .map(|(index, (number, name))| {
            assert_eq!(number, index + 1, "the list of layers is not numbered in order");
            name.to_owned()
        })
        .collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The modules of the crate that a source text names: what follows `crate::`, also in a group of braces.
fn named(text: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut names = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let rest = text.get(at + "crate::".len()..).unwrap_or_default();
        if before.is_some_and(is_name) {
            continue;
        }
        let rest = match rest.strip_prefix('{') {
            Some(group) => group.split_once('}').expect("a group of imports ends").0,
            None => rest.split(|letter| !is_name(letter)).next().unwrap_or_default(),
        };
        names.extend(rest.split(',').map(|item| item.split("::").next().unwrap_or_default().trim().to_owned()));
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn no_layer_names_a_later_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers = layers(&root);
    let rank = |name: &str| layers.iter().position(|layer| layer == name);
    let mut checked = 0;
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        let mut parts = inside.components().map(|part| part.as_os_str().to_str().unwrap());
        let (first, depth) = (parts.next().unwrap(), parts.count());
        if depth == 0 {
            assert!(["lib.rs", "table.rs"].contains(&first), "{first} is in no layer");
            continue;
        }
        let own = rank(first).unwrap_or_else(|| panic!("{first} is missing in the list of layers in src/lib.rs"));
        let text = fs::read_to_string(&path).unwrap();
        for name in named(&text).iter().filter(|name| !ROOT.contains(&name.as_str())) {
            let used =
                rank(name).unwrap_or_else(|| panic!("{} names crate::{name}, which is no layer", inside.display()));
            assert!(used <= own, "{} is in `{first}` and names `{name}`, a later layer", inside.display());
            checked += 1;
        }
        // As many steps up as lead from this module to the crate root.
        let climb = "super::".repeat(depth + usize::from(!inside.ends_with("mod.rs")));
        for layer in &layers {
            assert!(!text.contains(&format!("{climb}{layer}")), "{} names `{layer}` by `super`", inside.display());
        }
    }
    assert!(checked > 100, "only {checked} uses were found: does this test still read the sources?");
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::ffi::{In, Out};\nuse crate::{memory, ffi::In};\ncrate::ddi::lookup(); mycrate::other::x();";
    assert_eq!(named(text), ["ffi", "memory", "ffi", "ddi"]);
}
