//! The report as an HTML page: one file without external resources, with a light and a dark style.
//!
//! `maud` generates the markup and escapes every text. A content security policy forbids requests, and scripts except
//! those of a [`Page`], as a second protection against text from a trace.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use urscope_rule_pages as rule_pages;
use urscope_rules::{Rule, Severity};

use urscope_schema::{counted, since};

use super::text::{fate, hosts, named, ordered, reason, repeated, runs, verdict, whereabouts, written};
use crate::analysis::{Excerpt, FoundFinding, Judgement, Location, Verdict};

const STYLE: &str = include_str!("page.css");

/// The content security policy: it allows only the page's own styles.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A page with scripts that stands in the same file, and hides the report on a screen.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The nonce that all its scripts have.
    pub nonce: &'a str,
    /// Markup for the end of the head. It is not checked.
    pub head: &'a str,
    /// Markup for the body, before the report. It is not checked.
    pub body: &'a str,
}

pub(super) fn report(judgement: &Judgement, page: Option<Page<'_>>) -> String {
    let policy = page.map_or_else(
        || POLICY.to_owned(),
        |page| format!("{POLICY}; script-src 'nonce-{}'; img-src data:", page.nonce),
    );
    let verdict = verdict(judgement, false.into());
    let (counting, excused): (Vec<_>, Vec<_>) = judgement.findings.iter().partition(|found| found.excuse.is_none());
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "urscope: " (verdict) }
                style #report-style { (PreEscaped(STYLE)) }
                @if let Some(page) = page { (PreEscaped(page.head)) }
            }
            body {
                @if let Some(page) = page { (PreEscaped(page.body)) }
                div #report {
                    header {
                        h1 { "urscope " span class=(grade(judgement)) { (verdict) } }
                        @if let Some(happened) = judgement.happened() { p.lead { (happened) } }
                        p.faint { (total(judgement)) }
                        @if let Some(reason) = reason(judgement) { p { (reason) } }
                        @if let Some(runs) = runs(judgement) { p { (runs) } }
                    }
                    main {
                        @for found in counting { (finding(found)) }
                        (exempted(judgement, &excused))
                        (processes(judgement))
                        (calls(judgement))
                        (gaps(judgement))
                        (rules(judgement))
                    }
                }
            }
        }
    };
    markup.into_string()
}

fn grade(judgement: &Judgement) -> &'static str {
    match judgement.verdict {
        Verdict::Clean => "clean",
        Verdict::Findings => judgement.worst().map_or("error", |finding| finding.severity.name()),
        Verdict::PartlyJudged | Verdict::NotJudged => Severity::Warning.name(),
    }
}

fn total(judgement: &Judgement) -> String {
    let calls: u64 = judgement.calls.values().sum();
    format!("{}, {}", counted(judgement.processes.len(), "process"), counted(calls, "call"))
}

fn finding(finding: &FoundFinding) -> Markup {
    html! {
        article class=(finding.severity.name()) id={ "f-" (finding.identity) } {
            h2 {
                span.grade { (finding.severity) } " " (finding.rule)
                @if let Some(site) = finding.process.call_site() { " in " (site.brief()) (finding.process.via()) }
                @if let Some(count) = repeated(finding) { span.faint { " " (count) ", the first:" } }
            }
            p { (finding.message) }
            div.sides {
                (location("here", &finding.process))
                @if let Some(other) = &finding.other { (location("there", other)) }
                @if let Some(later) = &finding.later { (location("too late", later)) }
            }
            @if let Some(hosts) = hosts(finding, usize::MAX) { p.faint { "hosts: " (hosts) } }
            @if let Some(bytes) = &finding.fingerprint { p.faint { "handle data with fingerprint " code { (bytes) } } }
            p { strong { "What to do: " } (finding.advice) }
            @if let Some(excuse) = &finding.excuse { p.faint { (excuse) } }
        }
    }
}

fn location(name: &str, side: &Location) -> Markup {
    html! {
        section {
            h3 { (name) " " span.faint { (since(side.time_ns)) } }
            p { (whereabouts(side)) }
            @if let Some(excerpt) = &side.excerpt { (lines(excerpt)) }
            @if !side.stack.is_empty() {
                ol { @for frame in side.passed_frames().chain(side.shown_frames()) { li { code { (written(frame)) } } } }
                details {
                    summary { "whole stack" }
                    ol { @for frame in &side.stack { li { code { (written(frame)) } " " span.faint { (frame.module) " " (frame.offset) } } } }
                }
            }
        }
    }
}

/// Lines of source, with their numbers and the one that is meant marked.
fn lines(excerpt: &Excerpt) -> Markup {
    html! {
        figure {
            figcaption.faint { (excerpt.file) ":" (excerpt.line) }
            pre {
                @for (number, line) in excerpt.numbered() {
                    span.meant[number == excerpt.line] { span.faint { (number) } "  " (line) "\n" }
                }
            }
            @if excerpt.changed { p.faint { "The file was changed after the run: lines may have moved." } }
        }
    }
}

fn exempted(judgement: &Judgement, excused: &[&FoundFinding]) -> Markup {
    let unused: Vec<_> = judgement.suppressions.iter().filter(|suppression| suppression.count == 0).collect();
    html! {
        @if !excused.is_empty() {
            details {
                summary { (counted(excused.len(), "finding")) " suppressed or unchanged" }
                @for found in excused { (finding(found)) }
            }
        }
        @if !unused.is_empty() {
            h2 { "Suppressions that were not needed" }
            ul { @for it in unused { li { code { (it.place) } ": " code { (it.text) } } } }
        }
        @if let Some(compared) = &judgement.baseline {
            h2 { "Compared with " (compared.file) }
            p { (compared.new) " new, " (compared.gone.len()) " fixed, " (compared.known) " unchanged" }
            ul { @for gone in &compared.gone { li { "fixed: " (gone.severity) " " (gone.rule) ": " (gone.message) } } }
        }
    }
}

fn processes(judgement: &Judgement) -> Markup {
    html! {
        @if !judgement.processes.is_empty() {
            h2 { "Processes" }
            table {
                tr { th { "process" } th { "host" } th { "outcome" } th { "trace" } }
                @for process in ordered(&judgement.processes) {
                    tr {
                        td { (named(process)) } td { (process.host) } td { (fate(process)) } td { code { (process.file) } }
                    }
                }
            }
        }
    }
}

fn calls(judgement: &Judgement) -> Markup {
    html! {
        @if !judgement.calls.is_empty() {
            h2 { "Calls" }
            table { @for (name, count) in &judgement.calls { tr { td { code { (name) } } td.number { (count) } } } }
        }
    }
}

fn gaps(judgement: &Judgement) -> Markup {
    html! {
        @if !judgement.unseen.is_empty() {
            h2 { "Not seen" }
            ul { @for unseen in &judgement.unseen { li { (unseen) } } }
        }
        @if judgement.skipped_lines > 0 {
            h2 { "Lines that could not be used (" (judgement.skipped_lines) ")" }
            ul { @for line in &judgement.skipped { li { code { (line.place()) } " (byte " (line.offset) "): " (line.why) } } }
        }
    }
}

/// The pages of the rules that found something.
fn rules(judgement: &Judgement) -> Markup {
    let mut codes: Vec<&str> = judgement.findings.iter().map(|finding| finding.rule.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<_> = codes.into_iter().filter_map(Rule::named).collect();
    html! {
        @if !rules.is_empty() {
            h2 { "The rules" }
            @for rule in rules {
                details { summary { code { (rule.code) } ": " (rule.title) } pre { (rule_pages::Page::for_rule(rule).explained()) } }
            }
        }
    }
}
