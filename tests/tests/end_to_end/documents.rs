//! The documents name what is there: every path and every relative link in them leads somewhere, and every command
//! works.
//!
//! Must never read generated pages for names of files: those are compared with the code that makes them.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use urscope_tests::{files_with, repository};

mod block;
mod claims;
mod commands;

/// The documents outside of `docs/` that name files of the repository, with the path from the root or from the
/// document's own folder.
const DOCUMENTS: [&str; 5] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "ui/README.md", "device/README.md"];

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

/// Whether a text has a block of code that is indented, outside of fences. What belongs to an entry of a list follows
/// another line.
fn has_indented_block(text: &str) -> bool {
    let mut fenced = false;
    let mut blank = true;
    text.lines().any(|line| {
        fenced ^= line.trim_start().starts_with("```");
        let begins = !fenced && blank && line.starts_with("    ") && !line.trim_start().starts_with("```");
        blank = line.trim().is_empty();
        begins
    })
}

/// The pages in `docs/`, by their paths from the root.
fn pages() -> Vec<String> {
    let folder = fs::read_dir(repository().join("docs")).expect("docs can be listed");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut names: Vec<_> =
        pages.map(|path| format!("docs/{}", path.file_name().unwrap_or_default().to_string_lossy())).collect();
    names.sort();
    names
}

/// The README and the pages that are written by hand. A generated page says so in its head.
fn hand_written() -> Vec<String> {
    let is_generated = |page: &String| {
        let text = read(&repository().join(page));
        text.lines().take(6).any(|line| line.contains("BLESS=1 cargo test"))
    };
    let found: Vec<_> =
        ["README.md".to_owned()].into_iter().chain(pages().into_iter().filter(|page| !is_generated(page))).collect();
    assert!(found.len() > 10, "{found:?}");
    found
}

/// A newcomer reads it in five minutes; the rest is in `docs/`.
#[test]
fn the_readme_is_short() {
    let words = read(&repository().join("README.md")).split_whitespace().count();
    assert!((300..=900).contains(&words), "README.md has {words} words, as `wc -w` counts them");
}

/// Each leads a kind of user from the installation to a fixed program.
#[test]
fn the_pages_for_kinds_of_users_are_short() {
    let first = |page: &String| page == "docs/tutorial.md" || page.starts_with("docs/start-");
    let lengths: Vec<(String, usize)> = pages()
        .into_iter()
        .filter(first)
        .map(|page| {
            let words = read(&repository().join(&page)).split_whitespace().count();
            (page, words)
        })
        .collect();
    assert!(lengths.len() == 5 && lengths.iter().all(|(_, words)| *words <= 900), "{lengths:?}");
}

/// What is said twice goes. The table of functions is made from the rows.
#[test]
fn all_pages_together_can_be_read() {
    let all = pages().into_iter().filter(|page| page != "docs/functions.md").chain(["README.md".to_owned()]);
    let words: usize = all.map(|page| prose(&read(&repository().join(page))).split_whitespace().count()).sum();
    assert!(words <= 36_200, "README.md and docs/ have {words} words outside of blocks of code");
}

/// Whoever opens the README finds every page from there.
#[test]
fn the_readme_leads_to_every_page() {
    let readme = read(&repository().join("README.md"));
    let linked: BTreeSet<&str> = relative_links(&readme).collect();
    let missing: Vec<String> = pages().into_iter().filter(|page| !linked.contains(page.as_str())).collect();
    assert_eq!(missing, [""; 0], "the index in README.md has no link to them");
}

/// A count with a comma in front of the last three digits.
fn with_comma(count: u64) -> String {
    if count < 1000 { count.to_string() } else { format!("{},{:03}", count / 1000, count % 1000) }
}

#[test]
fn the_page_on_performance_has_the_kept_counts_of_instructions() {
    let kept: serde_json::Value =
        serde_json::from_str(&read(&repository().join("tests/instructions.json"))).expect("the counts are JSON");
    let page = read(&repository().join("docs/performance.md"));
    for form in ["Chrome form", "binary form"] {
        let [traced, validated] = ["traced", "validated"].map(|what| {
            let counts = &kept["release"][format!("{form}, {what}")];
            let [own, elsewhere] = ["liburscope.so", "elsewhere"].map(|part| counts[part].as_u64().expect("a count"));
            format!("{} ({})", with_comma(own + elsewhere), with_comma(own))
        });
        let row = format!("| {form} | {traced} | {validated} |");
        assert!(page.contains(&row), "docs/performance.md lacks the row {row}");
    }
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
    let mut checked = 0;
    for document in DOCUMENTS.into_iter().map(str::to_owned).chain(hand_written()) {
        let text = prose(&read(&repository().join(&document)));
        let folder = repository().join(&document).parent().expect("a document has a folder").to_path_buf();
        let paths: Vec<&str> = code_spans(&text).filter_map(|span| path_of(span, &top_level)).collect();
        checked += paths.len();
        let missing: Vec<&str> =
            paths.into_iter().filter(|path| !repository().join(path).exists() && !folder.join(path).exists()).collect();
        assert!(missing.is_empty(), "{document} names what is not there (paths start at the root): {missing:#?}");
    }
    assert!(checked > 200, "only {checked} paths were recognized: has their form changed?");
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

/// The targets of the links and pictures in a text that are files: `](TARGET)`.
fn relative_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| !target.contains(':') && !target.is_empty())
}

/// The anchors of a text, as GitHub makes them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced && line.starts_with('#')
    });
    let letters = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    headings.map(letters).collect()
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let documents = files_with("md", &repository());
    let mut checked = 0;
    for document in &documents {
        let text = prose(&read(document));
        for link in relative_links(&text) {
            checked += 1;
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = match target {
                "" => document.clone(),
                _ => document.parent().expect("a document has a folder").join(target),
            };
            assert!(file.exists(), "{} links to {target}, which is not there", document.display());
            let has_headings = file.extension().is_some_and(|extension| extension == "md");
            let leads = anchor.is_empty() || has_headings && anchors(&read(&file)).contains(anchor);
            assert!(leads, "{} links to {link}, and {} has no such heading", document.display(), file.display());
        }
    }
    assert!(checked >= 100, "only {checked} links in {} documents", documents.len());
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# What it costs\n```sh\n# no heading\n```\n## `urscope run`\n### \"not judged\", ptrace and Yama\n";
    let expected = ["not-judged-ptrace-and-yama", "urscope-run", "what-it-costs"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
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
    let long = lengths.iter().filter(|(length, _)| *length > 500);
    assert_eq!(long.collect::<Vec<_>>(), Vec::<&(usize, &str)>::new(), "split them");
}

/// The tests in the repository, by name.
fn tests() -> BTreeSet<String> {
    let texts = files_with("rs", &repository()).into_iter().map(|file| read(&file));
    let names = |text: &str| {
        let functions = text.split("#[test]").skip(1).filter_map(|behind| behind.split("fn ").nth(1));
        functions.filter_map(|function| function.split('(').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    texts.flat_map(|text| names(&text)).collect()
}

#[test]
fn each_promise_of_the_page_on_security_names_its_tests() {
    let tests = tests();
    let text = read(&repository().join("SECURITY.md"));
    let defended = text.split("\n## ").find(|part| part.starts_with("What is defended")).expect("the section");
    let promises: Vec<&str> = defended.split("\n* ").skip(1).collect();
    assert!(promises.len() >= 14, "only {} promises", promises.len());
    for promise in promises {
        let named = promise.split_once("Test:").or_else(|| promise.split_once("Tests:")).map_or("", |(_, named)| named);
        let names: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test is named: {promise}");
        for name in names {
            assert!(tests.contains(name), "there is no test {name}");
        }
    }
}

/// A tag can be moved to other code by whoever owns the repository of the action.
#[test]
fn actions_are_pinned_by_commit() {
    let workflows = fs::read_dir(repository().join(".github/workflows")).expect("the workflows");
    let mut checked = 0;
    for workflow in workflows {
        let text = read(&workflow.expect("an entry").path());
        for action in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action) {
            let commit =
                action.split_once('@').map_or("", |(_, version)| version.split(' ').next().unwrap_or_default());
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
            checked += 1;
        }
    }
    assert!(checked > 0, "no action is used");
}
