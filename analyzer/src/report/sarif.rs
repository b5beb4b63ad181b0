//! SARIF 2.1.0 (OASIS), for code scanning and editors.
//!
//! A result has the place of the finding as its location, the other place and the wrappers that lead to the calls as
//! related locations, and both stacks as `stacks`. Numbers in the comments are sections of the specification.

use std::path::Path;

use serde_json::{Value, json};
use urscope_rule_pages::Page;
use urscope_rules::Rule;
use urscope_rules::catalog::{NO_CALLS_SEEN, RULES};

use urscope_schema::counted;

use super::source;
use super::text::{HOSTS, hosts, whereabouts};
use crate::analysis::{Excuse, FoundFinding, Frame, Judgement, Location, Verdict};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The name of the root directory of the sources (3.14.14).
const ROOT: &str = "SRCROOT";

pub(super) fn log(judgement: &Judgement, root: &Path) -> Value {
    let writer = Writer { judgement, root };
    let compared = judgement.baseline.is_some();
    let results: Vec<_> = judgement.findings.iter().map(|finding| writer.result(finding, compared)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "urscope",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules().map(descriptor).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": judgement.verdict != Verdict::NotJudged,
                "exitCode": judgement.exit,
                "toolExecutionNotifications": notifications(judgement),
            }],
            "originalUriBaseIds": {ROOT: {"uri": directory(root)}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The rules that can have results.
fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| *rule != NO_CALLS_SEEN)
}

/// A rule with its help (3.49).
fn descriptor(rule: &Rule) -> Value {
    let page = Page::for_rule(rule);
    let about = page.section("What it does").unwrap_or(rule.title).replace('\n', " ");
    json!({
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": about},
        "help": {"text": page.explained(), "markdown": page.explained()},
        "defaultConfiguration": {"level": rule.severity.name()},
    })
}

/// Why the results may be incomplete, and suppressions that were not needed (3.20.21).
fn notifications(judgement: &Judgement) -> Vec<Value> {
    let notification = |level: &str, text: &str| json!({"level": level, "message": {"text": text}});
    let level = if judgement.verdict == Verdict::Findings { "warning" } else { "error" };
    let mut all: Vec<_> = judgement.reason.iter().map(|reason| notification(level, reason)).collect();
    all.extend(judgement.unseen.iter().map(|unseen| notification("warning", unseen)));
    if judgement.skipped_lines > 0 {
        let lines = counted(judgement.skipped_lines, "line");
        all.push(notification("warning", &format!("{lines} could not be used")));
    }
    let unused = judgement.suppressions.iter().filter(|suppression| suppression.count == 0);
    all.extend(unused.map(|it| notification("note", &format!("{} was not needed: {}", it.place, it.text))));
    all
}

fn directory(root: &Path) -> String {
    let path = root.to_string_lossy();
    format!("file://{}/", source::encoded(path.trim_end_matches('/')))
}

struct Writer<'a> {
    judgement: &'a Judgement,
    root: &'a Path,
}

impl Writer<'_> {
    /// A finding (3.27).
    fn result(&self, finding: &FoundFinding, compared: bool) -> Value {
        let stacks: Vec<_> = finding.locations().filter(|side| !side.stack.is_empty()).map(|s| self.stack(s)).collect();
        let suppressions = match &finding.excuse {
            Some(Excuse::Suppression { place, text }) => {
                vec![json!({"kind": "external", "justification": format!("{place}: {text}")})]
            }
            _ => Vec::new(),
        };
        let hosts = hosts(finding, HOSTS).map_or_else(String::new, |hosts| format!(" Hosts: {hosts}."));
        let mut result = json!({
            "ruleId": finding.rule,
            "level": finding.severity.name(),
            "message": {"text": format!("{}. {}. {}.{hosts}", self.judgement.sentence(finding), finding.message, finding.advice)},
            "locations": [self.location(&finding.process)],
            "relatedLocations": self.related(finding),
            "codeFlows": self.flow(finding),
            "stacks": stacks,
            "partialFingerprints": {"urscopeIdentity/v1": finding.identity},
            "occurrenceCount": finding.count,
            "suppressions": suppressions,
            "properties": {
                "subject": finding.subject,
                "kind": finding.kind,
                "size": finding.size,
                "fingerprint": finding.fingerprint,
                "hosts": finding.hosts,
            },
        });
        if let Some(index) = rules().position(|rule| rule.code == finding.rule) {
            add(&mut result, "ruleIndex", index.into());
        }
        if compared {
            let known = matches!(finding.excuse, Some(Excuse::Baseline));
            add(&mut result, "baselineState", if known { "unchanged" } else { "new" }.into());
        }
        result
    }

    /// The location of a side: its source line, or its program if that is not known.
    fn location(&self, side: &Location) -> Value {
        let mut physical = match side.source() {
            Some((file, line)) => self.physical(file, line),
            None => self.physical(&side.executable, None),
        };
        if let Some(excerpt) = &side.excerpt {
            let meant = excerpt.numbered().find(|(number, _)| *number == excerpt.line).map_or("", |(_, line)| line);
            add(&mut physical, "region", json!({"startLine": excerpt.line, "snippet": {"text": meant}}));
            let lines = excerpt.lines.join("\n");
            let last = excerpt.numbered().last().map(|(number, _)| number);
            let context = json!({"startLine": excerpt.first, "endLine": last, "snippet": {"text": lines}});
            add(&mut physical, "contextRegion", context);
        }
        let function = side.shown_frames().find_map(|frame| frame.function.as_ref()).or(side.function.as_ref());
        let logical = function.map(|name| json!({"fullyQualifiedName": name, "kind": "function"}));
        json!({
            "physicalLocation": physical,
            "logicalLocations": logical.into_iter().collect::<Vec<_>>(),
            "message": {"text": whereabouts(side)},
        })
    }

    /// Both sides in the order of time, if there are two (3.36).
    fn flow(&self, finding: &FoundFinding) -> Vec<Value> {
        let mut sides: Vec<_> = finding.locations().collect();
        if sides.len() < 2 {
            return Vec::new();
        }
        sides.sort_by_key(|side| side.time_ns);
        let steps: Vec<_> = sides.into_iter().map(|side| json!({"location": self.location(side)})).collect();
        vec![json!({"threadFlows": [{"locations": steps}]})]
    }

    /// The other side, and the frames that were passed on both sides (3.27.22).
    fn related(&self, finding: &FoundFinding) -> Vec<Value> {
        let passed = finding.locations().flat_map(Location::passed_frames).filter(|frame| frame.line.is_some());
        let passed = passed.map(|frame| {
            let mut location = self.place(frame);
            add(&mut location, "message", json!({"text": format!("via {}", frame.through())}));
            location
        });
        let mut all: Vec<Value> = finding.other.iter().map(|other| self.location(other)).chain(passed).collect();
        for (location, id) in all.iter_mut().zip(1..) {
            add(location, "id", id.into());
        }
        all
    }

    /// A file with the line, if it is known (3.29).
    fn physical(&self, file: &str, line: Option<u32>) -> Value {
        let artifact = match source::below(self.root, file) {
            Some(relative) => json!({"uri": source::encoded(relative), "uriBaseId": ROOT}),
            None => json!({"uri": format!("file://{}", source::encoded(file))}),
        };
        match line.filter(|line| *line > 0) {
            Some(line) => json!({"artifactLocation": artifact, "region": {"startLine": line}}),
            None => json!({"artifactLocation": artifact}),
        }
    }

    /// A call stack, innermost first (3.44).
    fn stack(&self, side: &Location) -> Value {
        let frames: Vec<_> = side.stack.iter().map(|frame| self.frame(frame, side.tid)).collect();
        json!({"message": {"text": whereabouts(side)}, "frames": frames})
    }

    fn frame(&self, frame: &Frame, tid: u32) -> Value {
        json!({"location": self.place(frame), "module": frame.module, "threadId": tid})
    }

    /// The location of a frame.
    fn place(&self, frame: &Frame) -> Value {
        let file = frame.file.as_ref().unwrap_or(&frame.module);
        let mut physical = self.physical(file, frame.line);
        if let Some(offset) = frame.offset.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok()) {
            let address = json!({"relativeAddress": offset, "kind": "instruction"});
            add(&mut physical, "address", address);
        }
        let logical = frame.function.iter().map(|name| json!({"fullyQualifiedName": name, "kind": "function"}));
        json!({"physicalLocation": physical, "logicalLocations": logical.collect::<Vec<_>>()})
    }
}

fn add(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
