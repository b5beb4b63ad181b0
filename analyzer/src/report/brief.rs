//! The message of a finding in few words: without what only a second look needs. The whole one is in JSON, on the page
//! and with `--verbose`.

use urscope_rules::Rule;
use urscope_schema::api::Function;
use urscope_schema::{handle::Kind, host::ranks::process_name};

use crate::analysis::FoundFinding;

/// What stands before the address of an object that is named already.
const BEFORE_ADDRESS: [&str; 10] =
    ["allocation", "handle", "mapping", "memory", "event", "pool", "context", "data", " open as", "opens it as"];

/// Rules whose places, with their words, say everything unless the message has a proviso.
const TOLD: [&str; 9] = [
    "double-close",
    "double-put",
    "double-release",
    "freed-while-exported",
    "freed-while-open",
    "leaked-handle",
    "leaked-mapping",
    "use-after-close",
    "use-after-put",
];

/// The message, unless the places say it.
pub(super) fn message(finding: &FoundFinding) -> Option<String> {
    let is_shown = finding.locations().all(|side| side.call_site().is_some());
    // What is less than the rule says has a proviso.
    let is_usual = Rule::named(&finding.rule).is_some_and(|rule| rule.severity == finding.severity);
    let is_told = TOLD.contains(&finding.rule.as_str()) && finding.count <= 1 && is_usual;
    (!is_told || !is_shown).then(|| brief(finding))
}

fn brief(finding: &FoundFinding) -> String {
    let mut text = finding.message.clone();
    for side in finding.locations() {
        if let Some(name) = side.short_name() {
            text = text.replace(&process_name(&side.executable, side.pid, side.rank), &name);
        }
    }
    text = without(&text, " (", ")", |inside| {
        let is_size = inside.strip_suffix(" bytes").is_some_and(|number| number.chars().all(is_of_number));
        let is_call = inside.split_once(", thread ").is_some_and(|(name, tid)| is_word(name) && is_word(tid));
        is_size || is_call
    });
    for before in BEFORE_ADDRESS {
        text = without_address(&text, before);
    }
    match finding.function.as_deref().and_then(Function::from_name) {
        Some(function) => text.replace(Kind::Usm.noun(), function.interface().words.memory),
        None => text,
    }
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == ','
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The text without the parts between two marks that are not wanted.
fn without(text: &str, begin: &str, end: &str, unwanted: impl Fn(&str) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(begin) {
        shown.push_str(before);
        match after.split_once(end) {
            Some((inside, behind)) if unwanted(inside) => rest = behind,
            _ => {
                shown.push_str(begin);
                rest = after;
            }
        }
    }
    shown + rest
}

/// The text without the addresses behind a word.
fn without_address(text: &str, word: &str) -> String {
    let mark = format!("{word} 0x");
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&mark) {
        shown.push_str(before);
        shown.push_str(word.trim_end_matches(" as"));
        rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Location;

    #[test]
    fn a_message_in_few_words_has_no_addresses_threads_and_bytes() {
        let here =
            Location { pid: 7, executable: "/b/app".into(), role: Some("producer".into()), ..Location::default() };
        let there = Location { pid: 8, role: Some("consumer".into()), ..here.clone() };
        let message = "app (pid 7) frees USM allocation 0x7f3125d00000 of 8 MiB (8,388,608 bytes) in call 5 (urUSMFree, thread 7) \
            while app (pid 8) has it open as 0x7f04, since call 3 (urIPCOpenMemHandleExp, thread 8); not proved (for now)";
        let mut finding = FoundFinding { message: message.into(), other: Some(there), ..FoundFinding::note_at(here) };
        let few = "producer frees USM allocation of 8 MiB in call 5 while consumer has it open, since call 3; not proved (for now)";
        assert_eq!(brief(&finding), few);
        finding.function = Some("cuMemFree_v2".into());
        assert!(brief(&finding).starts_with("producer frees memory of 8 MiB in"));
    }
}
