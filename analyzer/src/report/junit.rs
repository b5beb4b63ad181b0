//! JUnit XML, for servers that show test results: a suite per program and rank where something was found, with a case
//! per rule that found it, and a suite of the run with the other rules.
//!
//! The same findings have the same names in every run, so that a server can compare runs: processes of one program
//! without ranks, which may begin in any order, share a suite. A case fails if a finding of the rule in one of its
//! processes makes the verdict. Less severe findings go to the case's output. A case whose findings are all excused is
//! skipped. If nothing was judged, the case of the run is an error. The elements are those of Jenkins' schema
//! (`junit-10.xsd`).

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use urscope_rules::Rule;
use urscope_rules::catalog::{NO_CALLS_SEEN, RULES};

use super::text::{HOSTS, details, hosts};
use crate::analysis::{FoundFinding, Judgement, Occurrence, ProcessSummary, Verdict, file_name};

pub(super) fn write(judgement: &Judgement, out: &mut impl Write) -> io::Result<()> {
    let mut alike: BTreeMap<(Option<u32>, &str), Vec<&ProcessSummary>> = BTreeMap::new();
    for summary in &judgement.processes {
        alike.entry((summary.rank, file_name(&summary.executable))).or_default().push(summary);
    }
    let found = alike.into_iter().map(|((rank, program), processes)| {
        let rank = rank.map_or_else(String::new, |rank| format!(" rank {rank}"));
        suite(judgement, &processes, format!("{program}{rank}"))
    });
    let found = found.filter(|suite| !suite.cases.is_empty());
    let suites: Vec<_> = std::iter::once(run(judgement)).chain(found).collect();
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let count = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>().to_string();
    let tests = count(|suite| suite.cases.len());
    let failures = count(Suite::failures);
    let errors = count(Suite::errors);
    let all = xml.create_element("testsuites").with_attribute(("name", "urscope"));
    let all = all.with_attribute(("tests", tests.as_str())).with_attribute(("failures", failures.as_str()));
    let all = all.with_attribute(("errors", errors.as_str()));
    all.write_inner_content(|xml| suites.iter().try_for_each(|suite| suite.write(xml)))?;
    writeln!(out)
}

/// Processes that are not told apart, or the run.
struct Suite {
    name: String,
    host: Option<String>,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

/// A rule in a suite.
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
    Broken { verdict: &'static str, reason: String },
    /// All findings are excused.
    Skipped { why: String },
}

/// The suite of the run: whether it could be judged, and if so the rules that found nothing.
fn run(judgement: &Judgement) -> Suite {
    let reason = judgement.reason.clone().unwrap_or_default();
    let outcome = match judgement.verdict {
        Verdict::Clean | Verdict::Findings => Outcome::Passed(reason),
        verdict => Outcome::Broken { verdict: verdict.name(), reason },
    };
    let mut cases = vec![Case { name: "judged", outcome }];
    if judgement.verdict != Verdict::NotJudged {
        let is_clean = |rule: &&Rule| judgement.findings.iter().all(|finding| finding.rule != rule.code);
        cases.extend(
            rules().filter(is_clean).map(|rule| Case { name: rule.code, outcome: Outcome::Passed(String::new()) }),
        );
    }
    Suite { name: "run".into(), host: None, properties: Vec::new(), cases }
}

/// The rules that can have findings.
fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| *rule != NO_CALLS_SEEN)
}

fn suite(judgement: &Judgement, processes: &[&ProcessSummary], name: String) -> Suite {
    let cases = rules().filter_map(|rule| {
        let is_here = |finding: &&FoundFinding| {
            finding.rule == rule.code && processes.iter().any(|process| occurred_in(finding, process))
        };
        let findings: Vec<_> = judgement.findings.iter().filter(is_here).collect();
        (!findings.is_empty()).then(|| Case { name: rule.code, outcome: outcome(judgement, &findings) })
    });
    let properties = processes.iter().flat_map(|process| {
        [("pid", process.pid.to_string()), ("executable", process.executable.clone()), ("trace", process.file.clone())]
    });
    let mut hosts: Vec<&str> = processes.iter().map(|process| process.host.as_str()).collect();
    hosts.dedup();
    let host = if let [host] = &hosts[..] { Some((*host).to_owned()) } else { None };
    Suite { name, host, properties: properties.collect(), cases: cases.collect() }
}

/// Whether a finding occurred in a process. Not all occurrences are listed.
fn occurred_in(finding: &FoundFinding, process: &ProcessSummary) -> bool {
    let is_it =
        |it: &Occurrence| (&process.host, process.pid, &process.executable) == (&it.host, it.pid, &it.executable);
    finding.process.is_in(process) || finding.occurrences.iter().any(is_it)
}

fn outcome(judgement: &Judgement, findings: &[&FoundFinding]) -> Outcome {
    let text = findings.iter().map(|finding| details(finding)).collect::<Vec<_>>().join("\n");
    let counts = findings.iter().any(|finding| finding.excuse.is_none());
    let excuse = findings.iter().find_map(|finding| finding.excuse.as_ref());
    match (findings.iter().find(|finding| finding.fails), excuse) {
        (Some(worst), _) => {
            let hosts = hosts(worst, HOSTS).map_or_else(String::new, |hosts| format!(" (hosts: {hosts})"));
            Outcome::Failed {
                grade: worst.severity.name(),
                message: format!("{}{hosts}", judgement.sentence(worst)),
                text,
            }
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
            Self::Broken { verdict, reason } => {
                let error = xml.create_element("error").with_attribute(("message", reason.as_str()));
                error.with_attribute(("type", *verdict)).write_empty()
            }
            Self::Skipped { why } => {
                xml.create_element("skipped").with_attribute(("message", why.as_str())).write_empty()
            }
        }?;
        Ok(())
    }
}
