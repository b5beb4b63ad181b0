//! The arrows inside the crates: which modules a folder must not mention, and that no circle leads through a folder.
//! The arrows between crates are in `crate_dependencies`.
//!
//! The sources are read as text, so that uses inside of macros and paths inside of expressions count too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A crate's sources, a folder or file in them, and the modules of the crate that it must not mention.
struct Row {
    sources: &'static str,
    inside: &'static str,
    forbidden: &'static [&'static str],
}

const fn row(sources: &'static str, inside: &'static str, forbidden: &'static [&'static str]) -> Row {
    Row { sources, inside, forbidden }
}

const ROWS: &[Row] = &[
    // Roles, result codes and the table of functions know no form of a trace.
    row("schema/src", "api", &["trace", "host"]),
    // The life cycle and the tracker know no rule, and nobody who takes the tracker's facts.
    row("rules/src", "lifecycle.rs", &["catalog", "checker", "finding", "rule", "tracker"]),
    row("rules/src", "tracker", &["catalog", "checker", "finding", "rule"]),
    // A rule does not know who checks it.
    row("rules/src", "rule.rs", &["catalog", "checker"]),
    row("rules/src", "catalog", &["checker"]),
    row("rules/src", "checker.rs", &["tracker::transitions"]),
    // What is asked of an analysis, and how it is written, is not known to it.
    row("analyzer/src", "analysis", &["follow", "lifetimes", "questions", "report"]),
    row("analyzer/src", "lifetimes", &["questions", "report"]),
    row("analyzer/src", "files", &["analysis", "explain", "follow", "lifetimes", "questions", "report"]),
    // Nothing of the command knows how it is called.
    row("analyzer/command/src", "arguments", &["commands", "doctor", "export", "run", "top", "view", "window"]),
    row("analyzer/command/src", "output", &["commands", "doctor", "export", "run", "top", "view", "window"]),
    row("analyzer/command/src", "doctor", &["commands"]),
    row(
        "analyzer/command/src",
        "export",
        &["arguments", "commands", "doctor", "output", "run", "top", "view", "window"],
    ),
    row("analyzer/command/src", "run", &["commands"]),
    row("analyzer/command/src", "top", &["commands"]),
    row("analyzer/command/src", "view", &["arguments", "commands", "doctor", "output", "run", "top", "window"]),
    // A backend knows no entry point, and nothing of what stands in front of it.
    row("shim/src", "backend", &["entry", "interface", "call", "chain", "layer", "stacks", "devices"]),
    row("shim/src", "backend/adapter", &["backend::level_zero", "knobs"]),
    // An interface knows no other one.
    row("shim/src", "interface/unified_runtime", &["interface::level_zero", "interface::cuda", "interface::driver"]),
    row("shim/src", "interface/level_zero", &["interface::unified_runtime", "interface::cuda", "backend"]),
    row("shim/src", "interface/cuda", &["interface::unified_runtime", "interface::level_zero", "backend"]),
    row("shim/src", "interface/driver.rs", &["interface::unified_runtime", "interface::level_zero", "interface::cuda"]),
    row(
        "shim/src",
        "interface/libraries.rs",
        &["interface::unified_runtime", "interface::level_zero", "interface::cuda"],
    ),
    // A layer knows no other layer and not the chain that it is a part of.
    row("shim/src", "layer/trace", &["layer::validate", "chain", "call", "entry", "interface", "backend", "sharing"]),
    row("shim/src", "layer/validate", &["layer::trace", "chain", "call", "entry", "interface", "backend", "sharing"]),
    row(
        "shim/src",
        "layer/mod.rs",
        &["chain", "call", "entry", "interface", "backend", "sharing", "stacks", "knobs", "raw"],
    ),
    // The chain knows layers; the path of a call knows the chain, and gets the real function.
    row("shim/src", "chain.rs", &["call", "entry", "interface", "backend", "sharing"]),
    row("shim/src", "call.rs", &["layer", "entry", "interface", "backend"]),
    // Nothing carries out what is only observed.
    row("shim/src", "interface/unified_runtime/observed.rs", &["layer", "entry", "backend", "devices"]),
    // What everything rests on knows nothing above it.
    row("shim/src", "raw", &["backend", "call", "chain", "entry", "interface", "sharing", "knobs", "layer", "stacks"]),
    row("shim/src", "knobs.rs", &["backend", "call", "chain", "entry", "interface", "sharing", "layer", "stacks"]),
    row("shim/src", "stacks.rs", &["backend", "call", "chain", "entry", "interface", "sharing", "layer"]),
    row("shim/src", "devices.rs", &["call", "entry", "interface", "sharing", "layer", "stacks"]),
    row("shim/src", "sharing", &["backend", "call", "devices", "entry", "interface"]),
];

/// The modules of the tracker, from the bottom up. Each mentions only those of the lines above its own.
const TRACKER: &[&str] = &[
    "maps rights",
    "small_maps",
    "records process",
    "lists queues",
    "exports freeing in_flight observations mapped tombstones",
    "pending",
    "process_state",
    "state",
    "resolving",
    "changes",
    "transitions",
    "fact fact_kind",
    "entering leaving returning unordered view",
];

/// The words and punctuation of a source, without comments, strings and character literals.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if first == '"' {
            string(rest)
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of the raw string that a text begins with, if it begins with one.
fn raw_string(text: &str) -> Option<usize> {
    let behind = text.strip_prefix('r').or_else(|| text.strip_prefix("br"))?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let content = behind[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - content.len() + content.find(&end)? + end.len())
}

/// The length of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut escaped = true;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of the character literal that a text begins with, or of the quotation mark of a lifetime.
fn character(text: &str) -> usize {
    if text.starts_with("'\\") {
        return text[3..].find('\'').map_or(text.len(), |end| end + 4);
    }
    let mut letters = text.char_indices().skip(2);
    match letters.next() {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

/// The module that a file holds, as the path from the root of its crate.
fn module(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path.iter().map(|part| part.to_str().expect("text").to_owned()).collect();
    let file = parts.pop().expect("a file");
    match file.strip_suffix(".rs").expect("a source") {
        "mod" | "lib" | "main" => {}
        name => parts.push(name.to_owned()),
    }
    parts
}

/// Every path of the own crate that a source mentions, from the root of the crate.
fn mentions(module: &[String], source: &str) -> BTreeSet<Vec<String>> {
    let tokens = tokens(source);
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    let mut found = BTreeSet::new();
    // The modules that stand in the file, and at which depth of braces each began.
    let mut inline = Vec::<(String, usize)>::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match token(at) {
            "{" => {
                if at >= 2 && token(at - 2) == "mod" {
                    inline.push((token(at - 1).to_owned(), depth));
                }
                depth += 1;
            }
            "}" => {
                depth -= 1;
                inline.pop_if(|(_, began)| *began == depth);
            }
            root @ ("crate" | "self" | "super") if token(at + 1) == "::" && (at == 0 || token(at - 1) != "::") => {
                let mut here = module.to_vec();
                here.extend(inline.iter().map(|(name, _)| name.clone()));
                match root {
                    "crate" => here.clear(),
                    "super" => drop(here.pop()),
                    _ => {}
                }
                at = follow(&tokens, at + 2, here, &mut found);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Follows a path behind its `::`, into all branches of a group; gives where it ends.
fn follow(tokens: &[String], mut at: usize, mut path: Vec<String>, found: &mut BTreeSet<Vec<String>>) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    loop {
        match token(at) {
            "super" => drop(path.pop()),
            "self" => {}
            "{" => {
                at += 1;
                while token(at) != "}" && at < tokens.len() {
                    at = follow(tokens, at, path.clone(), found);
                    while !matches!(token(at), "," | "}" | "") {
                        at += 1;
                    }
                    at += usize::from(token(at) == ",");
                }
                return at + 1;
            }
            name => path.push(name.to_owned()),
        }
        at += 1;
        if token(at) != "::" || token(at + 1) == "<" {
            found.insert(path);
            return at;
        }
        at += 1;
    }
}

/// Whether a mention gives access to a module: it is the module, something in it, or a module that it lies in.
fn reaches(mention: &[String], forbidden: &str) -> bool {
    let forbidden: Vec<&str> = forbidden.split("::").collect();
    let mention = mention.strip_suffix(&["*".to_owned()][..]).unwrap_or(mention);
    mention.len().min(forbidden.len()) > 0 && mention.iter().zip(&forbidden).all(|(one, other)| one == other)
}

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let files = urscope_tests::files_with("rs", path);
    assert!(!files.is_empty(), "no sources in {}", path.display());
    files
}

#[test]
fn no_folder_mentions_a_module_that_it_must_not_know() {
    let mut broken = Vec::new();
    for Row { sources: root, inside, forbidden } in ROWS {
        let root = urscope_tests::repository().join(root);
        for wanted in *forbidden {
            let wanted = root.join(wanted.replace("::", "/"));
            assert!(wanted.is_dir() || wanted.with_extension("rs").is_file(), "there is no {}", wanted.display());
        }
        for file in sources(&root.join(inside)) {
            let own = module(file.strip_prefix(&root).expect("below the root"));
            for mention in mentions(&own, &fs::read_to_string(&file).expect("a source")) {
                for wanted in forbidden.iter().filter(|wanted| reaches(&mention, wanted)) {
                    broken.push(format!(
                        "{} mentions {}, and must not know {wanted}",
                        file.display(),
                        mention.join("::")
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The sources of the crates.
const CRATES: [&str; 10] = [
    "analyzer/command/src",
    "analyzer/src",
    "device/loader/src",
    "device/src",
    "python/native/src",
    "rules/pages/src",
    "rules/src",
    "schema/src",
    "shim/src",
    "tests/src",
];

/// The source of a module without the tests in it.
fn without_tests(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a source");
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// What the face of a folder hands on: the path of a name in it, and where that leads.
fn handed_on(module: &[String], source: &str) -> BTreeMap<Vec<String>, Vec<String>> {
    let tokens = tokens(source);
    let mut found = BTreeSet::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| *token == "use") {
        if !matches!(tokens.get(at + 1).map(String::as_str), Some("crate" | "self" | "super" | "std") | None) {
            follow(&tokens, at + 1, module.to_vec(), &mut found);
        }
    }
    let name = |path: &Vec<String>| [module, path.last().map_or(&[][..], std::slice::from_ref)].concat();
    found.into_iter().map(|path| (name(&path), path)).filter(|(name, path)| name != path).collect()
}

/// What the files and folders of a folder mention of each other, and what says so.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The arrows in each folder of a crate.
fn arrows(root: &Path) -> BTreeMap<PathBuf, Arrows> {
    let mut files = sources(root);
    files.retain(|file| {
        !file.strip_prefix(root).expect("below the root").iter().any(|part| part == "tests" || part == "tests.rs")
    });
    let module_of = |file: &Path| module(file.strip_prefix(root).expect("below the root"));
    let mut handed = BTreeMap::new();
    for file in files.iter().filter(|file| file.ends_with("mod.rs") || file.ends_with("lib.rs")) {
        handed.extend(handed_on(&module_of(file), &without_tests(file)));
    }
    let mut arrows = BTreeMap::<PathBuf, Arrows>::new();
    for file in &files {
        let own = module_of(file);
        for mut mention in mentions(&own, &without_tests(file)) {
            for _ in 0..4 {
                let Some((known, to)) = (1..=mention.len()).find_map(|end| handed.get_key_value(&mention[..end]))
                else {
                    break;
                };
                mention.splice(..known.len(), to.iter().cloned());
            }
            let shared = own.iter().zip(&mention).take_while(|(one, other)| one == other).count();
            let (Some(from), Some(to)) = (own.get(shared), mention.get(shared)) else { continue };
            let folder = root.join(own[..shared].join("/"));
            if folder.join(to).is_dir() || folder.join(to).with_extension("rs").is_file() {
                let says = format!("{} mentions {}", file.display(), mention.join("::"));
                arrows.entry(folder).or_default().entry(from.clone()).or_default().insert(to.clone(), says);
            }
        }
    }
    arrows
}

/// What one of them leads to, also over others.
fn reached<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(from) = next.pop() {
        let to = arrows.get(from).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        next.extend(to.filter(|to| reached.insert(*to)));
    }
    reached
}

#[test]
fn no_circle_leads_through_a_folder() {
    let mut circles = Vec::new();
    for root in CRATES {
        for (folder, arrows) in arrows(&urscope_tests::repository().join(root)) {
            for (from, to, says) in
                arrows.iter().flat_map(|(from, to)| to.iter().map(move |(to, says)| (from, to, says)))
            {
                if [from, to].iter().any(|name| folder.join(name).join("mod.rs").is_file())
                    && reached(&arrows, to).contains(from.as_str())
                {
                    circles.push(format!("{says}, and {to} leads back to {from}"));
                }
            }
        }
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// The layers of the device, lowest first, as `device/src/lib.rs` lists them.
fn layers_of_the_device() -> Vec<String> {
    let text = fs::read_to_string(urscope_tests::repository().join("device/src/lib.rs")).expect("a source");
    let items = text.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once(". `"));
    let numbered = items.filter(|(number, _)| number.parse::<usize>().is_ok());
    numbered.filter_map(|(_, rest)| Some(rest.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn no_layer_of_the_device_mentions_a_later_one() {
    let root = urscope_tests::repository().join("device/src");
    let layers = layers_of_the_device();
    assert!(layers.len() > 5, "{layers:?}");
    for file in sources(&root) {
        let own = module(file.strip_prefix(&root).expect("below the root"));
        let rank = |module: &[String]| module.first().and_then(|first| layers.iter().position(|layer| layer == first));
        // The table of functions and the root are in no layer.
        let Some(first) = own.first().filter(|first| *first != "table") else { continue };
        let rank_of_own = rank(&own).unwrap_or_else(|| panic!("device/src/lib.rs does not list {first}"));
        for mention in mentions(&own, &fs::read_to_string(&file).expect("a source")) {
            let is_later = rank(&mention).is_some_and(|rank| rank > rank_of_own);
            assert!(!is_later, "{} mentions {}, in a later layer", file.display(), mention.join("::"));
        }
    }
}

#[test]
fn the_modules_of_the_tracker_are_layers() {
    let root = urscope_tests::repository().join("rules/src");
    let layer = |name: &str| TRACKER.iter().position(|names| names.split(' ').any(|known| known == name));
    let mut broken = Vec::new();
    for file in sources(&root.join("tracker")) {
        let own = module(file.strip_prefix(&root).expect("below the root"));
        // The root of the tracker lists its modules.
        let Some(name) = own.get(1) else { continue };
        let above = layer(name).unwrap_or_else(|| panic!("{name} is in no layer"));
        for mention in mentions(&own, &fs::read_to_string(&file).expect("a source")) {
            let other = mention.get(1).filter(|other| mention[0] == "tracker" && *other != name);
            if let Some(other) = other.filter(|other| layer(other).is_none_or(|below| below > above)) {
                broken.push(format!("{name} mentions {other}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn paths_are_found_in_groups_macros_and_inline_modules() {
    let source = r##"
        //! crate::comment::x
        use crate::{a::{b, c::D as E}, f::*};
        use super::g;
        macro_rules! m { () => { $crate::h::i() }; }
        fn x<'a>(_: &'a str) -> char { let _ = ("crate::string", r#"crate::raw"#, '"'); crate::j::<u8>(); '{' }
        mod tests { use super::*; use super::super::k::L; fn y() { self::n(); } }
        fn z() { super::o::p() }
    "##;
    let module = ["layer".to_owned(), "own".to_owned()];
    let found: Vec<String> = mentions(&module, source).iter().map(|path| path.join("::")).collect();
    let expected = [
        "a::b",
        "a::c::D",
        "f::*",
        "h::i",
        "j",
        "layer::g",
        "layer::k::L",
        "layer::o::p",
        "layer::own::*",
        "layer::own::tests::n",
    ];
    assert_eq!(found, expected);
    for (mention, reached) in [("layer", true), ("layer::own::x", true), ("layer::*", true), ("layer::other", false)] {
        let mention: Vec<String> = mention.split("::").map(str::to_owned).collect();
        assert_eq!(reaches(&mention, "layer::own"), reached, "{mention:?}");
    }
}
