//! Tests that hostile text of an input cannot control a terminal, a page or the log of a CI runner.

use std::collections::BTreeSet;

use serde_json::Value;
use urscope_analyzer::{Judgement, plain::is_unprintable, report};

use crate::forms::{every_form, form, github, html, judgements, junit, sarif};

/// Hostile text that names and messages can contain.
const EVIL: [&str; 10] = [
    "\x1b[2J\x1b]0;title\x07\u{9b}31m",
    "</pre></style></title><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)\" x='&amp;<",
    "]]>--><!--<![CDATA[",
    "\n::error file=a,line=1::forged\r\n::stop-commands::token",
    "\u{202e}gnp.exe\u{2066}\u{2028}\u{feff}\u{61c}",
    "::error file=a,line=1::forged ::stop-commands::token ",
    "##[error]forged ##[group]x ",
    "100%,a:b=c;%0A::set-env name=PATH::x",
    "\0\u{fffe}\u{ffff}\u{1}\u{8}\u{b}\u{7f}",
];

/// The judgement with hostile text before and after every text that is not an enumeration or a number.
fn poisoned(judgement: &Judgement, evil: &str) -> Judgement {
    fn poison(value: &mut Value, evil: &str) {
        match value {
            Value::String(text) => *text = format!("{evil}{text}{evil}"),
            Value::Array(values) => values.iter_mut().for_each(|value| poison(value, evil)),
            Value::Object(fields) => {
                let fixed = ["verdict", "severity", "ended", "by", "cause", "offset", "identity"];
                fields.iter_mut().filter(|field| !fixed.contains(&field.0.as_str())).for_each(|it| poison(it.1, evil));
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(judgement).unwrap();
    poison(&mut value, evil);
    serde_json::from_value(value).unwrap()
}

/// Shows judgements without and with hostile text: that of the run with stacks with each, and those of the rules with
/// two in turns.
fn everything(mut each: impl FnMut(&Judgement, &Judgement)) {
    for (index, tame) in judgements().iter().enumerate() {
        let has_stacks = tame.findings.iter().any(|finding| !finding.process.stack.is_empty());
        let is_its = |turn: usize| has_stacks || turn == index % EVIL.len() || turn == (3 * index + 1) % EVIL.len();
        for (_, evil) in EVIL.iter().enumerate().filter(|(turn, _)| is_its(*turn)) {
            each(tame, &poisoned(tame, evil));
        }
    }
}

/// The tags of a page with the names of their attributes, in order.
fn tags(page: &str) -> Vec<String> {
    let parts = page.split('<').skip(1).map(|part| part.split('>').next().unwrap());
    // Attribute values are in double quotes and contain none.
    parts.map(|tag| tag.split('"').step_by(2).collect::<String>()).collect()
}

/// Asserts that all elements are closed in order, so that no text closed one.
fn assert_balanced(page: &str) {
    let mut open = Vec::new();
    for tag in tags(page) {
        let name = tag.split(' ').next().unwrap().to_owned();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{page}"),
            None if ["!DOCTYPE", "meta"].contains(&name.as_str()) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}: {page}");
}

#[test]
fn no_format_contains_unprintable_characters() {
    everything(|_, evil| {
        for output in every_form(evil) {
            assert!(output.chars().all(|c| c == '\n' || !is_unprintable(c)), "{output:?}");
        }
    });
}

#[test]
fn json_is_read_back_unchanged() {
    everything(|_, evil| {
        let read: Judgement = serde_json::from_str(&form(|out| report::json(evil, out))).unwrap();
        assert_eq!(&read, evil);
    });
}

#[test]
fn no_name_becomes_markup_of_the_page() {
    let known: BTreeSet<_> = judgements().iter().flat_map(|tame| tags(&html(tame))).collect();
    everything(|_, evil| {
        let page = html(evil);
        assert_balanced(&page);
        for tag in tags(&page) {
            assert!(known.contains(&tag), "<{tag}> is not a tag of the page: {page}");
        }
    });
}

#[test]
fn no_name_becomes_markup_of_junit() {
    everything(|_, evil| {
        let xml = junit(evil);
        uppsala::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        assert!(!xml.contains("<script") && !xml.contains("<img") && !xml.contains("<![CDATA["), "{xml}");
        let allowed =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(xml.chars().all(allowed), "{xml:?}");
    });
}

#[test]
fn no_name_becomes_a_command_of_the_runner() {
    everything(|tame, evil| {
        let commands = |text: &str| {
            let command = |line: &str| ["::", "##["].iter().any(|sign| line.trim().starts_with(sign));
            text.lines().filter(|line| command(line)).count()
        };
        let output = github(evil);
        assert_eq!(commands(&output), commands(&github(tame)), "{output}");
        for line in output.lines().filter(|line| line.starts_with("::")) {
            let (properties, _) = line[2..].split_once("::").unwrap();
            let (_, properties) = properties.split_once(' ').unwrap();
            let names: Vec<_> = properties.split(',').map(|property| property.split_once('=').unwrap().0).collect();
            assert!(names.iter().all(|name| ["file", "line", "title"].contains(name)), "{line}");
        }
        assert_eq!(commands(&form(|out| report::text(evil, out, false))), 0);
    });
}

#[test]
fn the_uris_of_sarif_are_valid() {
    everything(|_, evil| {
        let log = sarif(evil).to_string();
        let uris = log.split("\"uri\":\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        for uri in uris {
            let path = uri.strip_prefix("file://").unwrap_or(uri);
            assert!(path.chars().all(|c| c.is_ascii_alphanumeric() || "-._~/%".contains(c)), "{uri}");
        }
    });
}
