//! Nothing that an input holds escapes: not into a terminal, not into a page, not into the log of a CI runner.

use std::collections::BTreeSet;

use serde_json::Value;
use urscope_analyzer::{Judgement, plain::steers, report};

use crate::forms::{form, github, html, judgements, junit, sarif};

/// What names and messages may hold.
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

/// The judgement with something evil in front of, in and behind every text of it but the words that are ours.
fn poisoned(judgement: &Judgement, evil: &str) -> Judgement {
    fn poison(value: &mut Value, evil: &str) {
        match value {
            Value::String(text) => *text = format!("{evil}{text}{evil}"),
            Value::Array(values) => values.iter_mut().for_each(|value| poison(value, evil)),
            Value::Object(fields) => {
                let ours = ["verdict", "severity", "ended", "by", "offset", "identity"];
                fields.iter_mut().filter(|field| !ours.contains(&field.0.as_str())).for_each(|it| poison(it.1, evil));
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(judgement).unwrap();
    poison(&mut value, evil);
    serde_json::from_value(value).unwrap()
}

fn everything(mut each: impl FnMut(&Judgement, &Judgement)) {
    for tame in judgements() {
        for evil in EVIL {
            each(&tame, &poisoned(&tame, evil));
        }
    }
}

/// The tags of a page with the names of their attributes, in order.
fn tags(page: &str) -> Vec<String> {
    let parts = page.split('<').skip(1).map(|part| part.split('>').next().unwrap());
    // Values are in double quotes, and none can hold one.
    parts.map(|tag| tag.split('"').step_by(2).collect::<String>()).collect()
}

/// Every element ends where it should, so that no text ended one.
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
fn no_form_holds_a_character_that_steers() {
    everything(|_, evil| {
        let mut text = Vec::new();
        report::text(evil, &mut text, false).unwrap();
        let json = form(|out| report::json(evil, out));
        let sarif = form(|out| report::sarif(evil, std::path::Path::new("/"), out));
        for told in [String::from_utf8(text).unwrap(), json, sarif, junit(evil), html(evil), github(evil)] {
            assert!(told.chars().all(|c| c == '\n' || !steers(c)), "{told:?}");
        }
    });
}

#[test]
fn json_loses_nothing() {
    everything(|_, evil| {
        let told: Judgement = serde_json::from_str(&form(|out| report::json(evil, out))).unwrap();
        assert_eq!(&told, evil);
    });
}

#[test]
fn no_name_becomes_markup_of_the_page() {
    let known: BTreeSet<_> = judgements().iter().flat_map(|tame| tags(&html(tame))).collect();
    everything(|_, evil| {
        let page = html(evil);
        assert_balanced(&page);
        for tag in tags(&page) {
            assert!(known.contains(&tag), "<{tag}> is none of ours: {page}");
        }
    });
}

#[test]
fn no_name_becomes_markup_of_junit() {
    everything(|_, evil| {
        let told = junit(evil);
        uppsala::parse(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
        assert!(!told.contains("<script") && !told.contains("<img") && !told.contains("<![CDATA["), "{told}");
        let lawful =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(told.chars().all(lawful), "{told:?}");
    });
}

#[test]
fn no_name_becomes_a_command_of_the_runner() {
    everything(|tame, evil| {
        let commands = |text: &str| {
            let command = |line: &str| ["::", "##["].iter().any(|sign| line.trim().starts_with(sign));
            text.lines().filter(|line| command(line)).count()
        };
        let told = github(evil);
        assert_eq!(commands(&told), commands(&github(tame)), "{told}");
        for line in told.lines().filter(|line| line.starts_with("::")) {
            let (properties, _) = line[2..].split_once("::").unwrap();
            let (_, properties) = properties.split_once(' ').unwrap();
            let names: Vec<_> = properties.split(',').map(|property| property.split_once('=').unwrap().0).collect();
            assert!(names.iter().all(|name| ["file", "line", "title"].contains(name)), "{line}");
        }
        let mut text = Vec::new();
        report::text(evil, &mut text, false).unwrap();
        assert_eq!(commands(&String::from_utf8(text).unwrap()), 0);
    });
}

#[test]
fn the_uris_of_sarif_are_uris() {
    everything(|_, evil| {
        let log = sarif(evil).to_string();
        let uris = log.split("\"uri\":\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        for uri in uris {
            let path = uri.strip_prefix("file://").unwrap_or(uri);
            assert!(path.chars().all(|c| c.is_ascii_alphanumeric() || "-._~/%".contains(c)), "{uri}");
        }
    });
}
