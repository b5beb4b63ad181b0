//! What users read never sends them to a file that they have not got: only the repository has its documents and
//! scripts.

use std::{collections::BTreeSet, fs, path::PathBuf};

use urscope_tests::{artefacts, files_below, repository};

/// Files of the repository by their paths from its root: those in folders but sources in Rust, whose names are in
/// messages of panics, and the documents in the root.
fn files() -> BTreeSet<String> {
    let named = |path: PathBuf| {
        let name = path.strip_prefix(repository()).expect("it is in the repository").to_string_lossy().into_owned();
        let is = |extension: &str| path.extension().is_some_and(|its| its == extension);
        (!is("rs") && (name.contains('/') || is("md"))).then_some(name)
    };
    let found: BTreeSet<String> = files_below(&repository()).into_iter().filter_map(named).collect();
    assert!(["docs/knobs.md", "scripts/setup", "README.md"].iter().all(|file| found.contains(*file)), "{found:?}");
    found
}

/// The lines of a program or a source in which a file is named. Comments are not shown to anybody.
fn naming(content: &[u8], files: &BTreeSet<String>) -> Vec<String> {
    let beginnings: BTreeSet<&str> =
        files.iter().map(|file| file.split_inclusive('/').next().unwrap_or_default()).collect();
    let shortest = files.iter().map(String::len).min().unwrap_or_default();
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    let mut found = Vec::new();
    // Most of a program is no text: what is too short is not worth a search.
    let lines = content.split(|byte| !is_text(byte)).filter(|line| line.len() >= shortest);
    for line in lines.filter_map(|line| std::str::from_utf8(line).ok()) {
        let is_comment = ["//", "* ", "/*", "# "].iter().any(|begin| line.trim_start().starts_with(begin));
        let names = |begin: &&str| {
            line.match_indices(begin).any(|(at, _)| files.iter().any(|file| line[at..].starts_with(file.as_str())))
        };
        if !is_comment && beginnings.iter().any(names) {
            found.push(line.to_owned());
        }
    }
    found
}

#[test]
fn no_message_names_a_file_that_is_not_installed() {
    let files = files();
    assert_eq!(naming(b"\0see docs/knobs.mdand more\0 * docs/knobs.md\0", &files), ["see docs/knobs.mdand more"]);
    let python = fs::read_dir(repository().join("python/urscope")).expect("the package can be listed");
    let modules = python.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some());
    let mut looked_at = 0;
    for path in modules.filter(|path| path.is_file()).chain([artefacts::command(), artefacts::preloaded()]) {
        let content = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(naming(&content, &files), Vec::<String>::new(), "in {}", path.display());
        looked_at += 1;
    }
    assert!(looked_at > 10, "{looked_at}");
}
