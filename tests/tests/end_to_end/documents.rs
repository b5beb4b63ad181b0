//! The documents name what is there: every path and every relative link in them leads somewhere.
//!
//! Must never read generated pages for names of files: those are compared with the code that makes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use urscope_tests::repository;

/// The documents that name files of the repository, with the path from the root or from the document's own folder.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "ui/README.md",
    "device/README.md",
    "docs/python.md",
    "docs/releasing.md",
];

/// What a file name ends with. Such a word without a folder in front of it is a path, too.
const EXTENSIONS: [&str; 10] = [".rs", ".js", ".mjs", ".md", ".toml", ".css", ".html", ".cpp", ".hpp", ".py"];

fn read(document: &Path) -> String {
    fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()))
}

/// The text without blocks of code: those show output and commands.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced && !line.starts_with("    ")
    });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// The words between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The path that a code span names, if it names one of the repository.
fn path_of<'a>(span: &'a str, top_level: &BTreeSet<String>) -> Option<&'a str> {
    let word = span.split_whitespace().next()?;
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let first = word.split('/').next()?;
    let in_folder = word.contains('/') && top_level.contains(first) && first != "target";
    let is_file = EXTENSIONS.iter().any(|extension| word.ends_with(extension));
    (plain && (in_folder || is_file)).then_some(word)
}

fn top_level() -> BTreeSet<String> {
    let entries = fs::read_dir(repository()).expect("the repository can be listed");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_path_in_the_documents_exists() {
    let top_level = top_level();
    for document in DOCUMENTS {
        let text = prose(&read(&repository().join(document)));
        let folder = repository().join(document).parent().expect("a document has a folder").to_path_buf();
        let paths: Vec<&str> = code_spans(&text).filter_map(|span| path_of(span, &top_level)).collect();
        assert!(!paths.is_empty(), "{document} names no files: has the form of its paths changed?");
        let missing: Vec<&str> =
            paths.into_iter().filter(|path| !repository().join(path).exists() && !folder.join(path).exists()).collect();
        assert!(missing.is_empty(), "{document} names what is not there (paths start at the root): {missing:#?}");
    }
}

#[test]
fn paths_are_recognized() {
    let top_level = BTreeSet::from(["shim".to_owned(), "scripts".to_owned(), "target".to_owned()]);
    for (span, path) in [
        ("shim/src/call.rs", Some("shim/src/call.rs")),
        ("scripts/bench view", Some("scripts/bench")),
        ("call.rs", Some("call.rs")),
        ("urscope run", None),
        ("target/runtime", None),
        ("LD_PRELOAD=…/liburscope.so", None),
        ("and/or", None),
    ] {
        assert_eq!(path_of(span, &top_level), path, "{span}");
    }
    assert_eq!(code_spans(&prose("a `b`\n```\n`c`\n```\n    `d`\n`e`")).collect::<Vec<_>>(), ["b", "e"]);
}

/// Every document of the repository, without what is downloaded or built.
fn documents_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if ![".git", "target", "node_modules"].contains(&name.as_str()) {
                documents_below(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The targets of the links and pictures in a text that are files: `](TARGET)`.
fn relative_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let local = targets.filter(|target| !target.contains(':') && !target.starts_with('#') && !target.is_empty());
    local.map(|target| target.split('#').next().unwrap_or(target))
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut documents = Vec::new();
    documents_below(&repository(), &mut documents);
    let mut checked = 0;
    for document in &documents {
        let text = prose(&read(document));
        for target in relative_links(&text) {
            checked += 1;
            let file = document.parent().expect("a document has a folder").join(target);
            assert!(file.exists(), "{} links to {target}, which is not there", document.display());
        }
    }
    assert!(checked >= 8, "only {checked} links in {} documents", documents.len());
}

/// The value of `key` in the section of `.editorconfig` whose head is `section`.
fn editor_setting(section: &str, key: &str) -> String {
    let text = read(&repository().join(".editorconfig"));
    let body = text.split(&format!("\n[{section}]\n")).nth(1).unwrap_or_else(|| panic!("no section [{section}]"));
    let section = body.split("\n[").next().unwrap_or(body);
    let line = section.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
    line.unwrap_or_else(|| panic!("no {key}")).to_owned()
}

#[test]
fn editors_use_the_widths_of_the_formatters() {
    let rust = read(&repository().join("rustfmt.toml"));
    assert!(rust.contains(&format!("max_width = {}\n", editor_setting("*.rs", "max_line_length"))), "{rust}");
    let page = read(&repository().join(".prettierrc.json"));
    assert!(page.contains(&format!("\"printWidth\": {},", editor_setting("*.{js,mjs}", "max_line_length"))), "{page}");
}

/// The files that are tables: they may be longer than others.
const TABLES: [&str; 1] = ["device/src/table.rs"];

/// The bounds of CONTRIBUTING.md. Those of functions are a lint (`too_many_lines`).
#[test]
fn source_files_are_as_short_as_promised() {
    let output =
        Command::new("git").args(["ls-files", "*.rs", "*.js", "*.mjs", "*.py"]).current_dir(repository()).output();
    let output = output.expect("git is there");
    let files = String::from_utf8(output.stdout).expect("names of files are text");
    let mut lengths: Vec<(usize, &str)> =
        files.lines().map(|file| (read(&repository().join(file)).lines().count(), file)).collect();
    assert!(lengths.len() > 400, "{} files", lengths.len());
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2].0;
    assert!(median <= 150, "the median of all files is {median} lines");
    let long = lengths.iter().filter(|(length, file)| *length > 500 && !TABLES.contains(file));
    assert_eq!(long.collect::<Vec<_>>(), Vec::<&(usize, &str)>::new(), "split them");
}
