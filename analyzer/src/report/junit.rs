//! JUnit XML: a suite per process and a case per rule, for servers that show test results.
//!
//! A case fails if a finding of the rule in the process makes the verdict; a finding on several hosts belongs to its first process.
//! Less severe findings go to the case's output. A case whose findings are all excused is skipped. If nothing was judged, the case of
//! the run is an error. The elements are those of Jenkins' schema (`junit-10.xsd`).

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use quick_xml::{
    Writer,
    events::{BytesDecl, BytesText, Event},
};
use urscope_rules::catalog::{NO_CALLS_SEEN, RULES};

use super::text::{HOSTS, details, hosts};
use crate::analysis::{FoundFinding, Judgement, ProcessSummary, file_name};

pub(super) fn write(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    let mut suites = vec![run(judgement)];
    let mut names = BTreeMap::<&str, u32>::new();
    for (index, summary) in judgement.processes.iter().enumerate() {
        let name = file_name(&summary.executable);
        let number = names.entry(name).and_modify(|number| *number += 1).or_insert(1);
        let name = if *number > 1 { format!("{name} ({number})") } else { name.to_owned() };
        suites.push(process(judgement, index, summary, name));
    }
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>().to_string();
    let (tests, failures, errors) = (count(|suite| suite.cases.len()), count(Suite::failures), count(Suite::errors));
    let all = xml.create_element("testsuites").with_attribute(("name", "urscope"));
    let all = all.with_attribute(("tests", tests.as_str())).with_attribute(("failures", failures.as_str()));
    let all = all.with_attribute(("errors", errors.as_str()));
    all.write_inner_content(|xml| suites.iter().try_for_each(|suite| suite.write(xml)))?;
    writeln!(out)
}

/// A process, or the run.
struct Suite {
    name: String,
    host: Option<String>,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

/// A rule in a process.
struct Case {
    name: &'static str,
    outcome: Outcome,
}

enum Outcome {
    /// There is no failure. The text describes less severe findings; it is empty if there are none.
    Passed(String),
    /// A finding that makes the verdict.
    Failed { grade: &'static str, message: String, text: String },
    /// There was nothing to judge.
    Broken { reason: String },
    /// All findings are excused.
    Skipped { why: String },
}

/// The suite of the run, with one case: whether the run could be judged.
fn run(judgement: &Judgement) -> Suite {
    let passed = || Outcome::Passed(String::new());
    let outcome = judgement.reason.clone().map_or_else(passed, |reason| Outcome::Broken { reason });
    Suite { name: "run".into(), host: None, properties: Vec::new(), cases: vec![Case { name: "judged", outcome }] }
}

fn process(judgement: &Judgement, index: usize, summary: &ProcessSummary, name: String) -> Suite {
    let rules = RULES.iter().filter(|rule| **rule != NO_CALLS_SEEN);
    let cases = rules.map(|rule| {
        let found =
            |finding: &&FoundFinding| finding.rule == rule.code && process_of(judgement, finding) == Some(index);
        let findings: Vec<_> = judgement.findings.iter().filter(found).collect();
        Case { name: rule.code, outcome: outcome(&findings) }
    });
    let properties = vec![
        ("pid", summary.pid.to_string()),
        ("executable", summary.executable.clone()),
        ("trace", summary.file.clone()),
    ];
    Suite { name, host: Some(summary.host.clone()), properties, cases: cases.collect() }
}

/// The index of the process that a finding belongs to.
fn process_of(judgement: &Judgement, finding: &FoundFinding) -> Option<usize> {
    let side = &finding.process;
    // Older reports have no host.
    let same_host = |summary: &ProcessSummary| summary.host == side.host || side.host.is_empty();
    let is_process = |summary: &ProcessSummary| {
        summary.pid == side.pid && summary.executable == side.executable && same_host(summary)
    };
    judgement.processes.iter().position(is_process)
}

fn outcome(findings: &[&FoundFinding]) -> Outcome {
    let text = findings.iter().map(|finding| details(finding)).collect::<Vec<_>>().join("\n");
    let counts = findings.iter().any(|finding| finding.excuse.is_none());
    let excuse = findings.iter().find_map(|finding| finding.excuse.as_ref());
    match (findings.iter().find(|finding| finding.fails), excuse) {
        (Some(worst), _) => {
            let hosts = hosts(worst, HOSTS).map_or_else(String::new, |hosts| format!(" (hosts: {hosts})"));
            Outcome::Failed { grade: worst.severity.name(), message: format!("{}{hosts}", worst.message), text }
        }
        (None, Some(excuse)) if !counts => Outcome::Skipped { why: excuse.to_string() },
        (None, _) => Outcome::Passed(text),
    }
}

impl Suite {
    fn failures(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed { .. })).count()
    }

    fn errors(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Broken { .. })).count()
    }

    fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped { .. })).count()
    }

    fn write<W: Write>(&self, xml: &mut Writer<W>) -> io::Result<()> {
        let counts = [
            ("tests", self.cases.len()),
            ("failures", self.failures()),
            ("errors", self.errors()),
            ("skipped", self.skipped()),
        ]
        .map(|(name, count)| (name, count.to_string()));
        let suite = xml.create_element("testsuite").with_attribute(("name", self.name.as_str()));
        let suite = suite.with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())));
        let suite = suite.with_attributes(self.host.iter().map(|host| ("hostname", host.as_str())));
        suite.write_inner_content(|xml| {
            if !self.properties.is_empty() {
                xml.create_element("properties").write_inner_content(|xml| {
                    for (name, value) in &self.properties {
                        let property = xml.create_element("property").with_attribute(("name", *name));
                        property.with_attribute(("value", value.as_str())).write_empty()?;
                    }
                    Ok(())
                })?;
            }
            self.cases.iter().try_for_each(|case| case.write(xml, &self.name))
        })?;
        Ok(())
    }
}

impl Case {
    fn write<W: Write>(&self, xml: &mut Writer<W>, suite: &str) -> io::Result<()> {
        let class = format!("urscope.{suite}");
        let case = xml.create_element("testcase").with_attribute(("name", self.name));
        let case = case.with_attribute(("classname", class.as_str()));
        match &self.outcome {
            Outcome::Passed(text) if text.is_empty() => case.write_empty(),
            outcome => case.write_inner_content(|xml| outcome.write(xml)),
        }?;
        Ok(())
    }
}

impl Outcome {
    fn write<W: Write>(&self, xml: &mut Writer<W>) -> io::Result<()> {
        match self {
            Self::Passed(text) => xml.create_element("system-out").write_text_content(BytesText::new(text)),
            Self::Failed { grade, message, text } => {
                let failure = xml.create_element("failure").with_attribute(("message", message.as_str()));
                failure.with_attribute(("type", *grade)).write_text_content(BytesText::new(text))
            }
            Self::Broken { reason } => {
                let error = xml.create_element("error").with_attribute(("message", reason.as_str()));
                error.with_attribute(("type", "not-judged")).write_empty()
            }
            Self::Skipped { why } => {
                xml.create_element("skipped").with_attribute(("message", why.as_str())).write_empty()
            }
        }?;
        Ok(())
    }
}
