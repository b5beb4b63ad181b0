//! Tests of exemptions: suppressions and the baseline.

use std::path::Path;

use urscope_analyzer::analysis::exemptions::{Exemptions, Suppressions, suppressing};
use urscope_analyzer::{Judgement, Options, Verdict, analysis::Excuse, report};
use urscope_rule_pages::Page;
use urscope_rules::{Severity, catalog::RULES};

use crate::forms::{exempting, form, with_stacks};
use crate::traces::{FAULTY_RUN, files, files_with, judged, judged_with};

fn suppressing_with(text: &str, fail_on: Severity) -> Options {
    let suppressions = Suppressions::parse(Path::new("known.txt"), text).unwrap();
    Options {
        fail_on,
        exemptions: Exemptions { suppressions, baseline: None },
        expected_signals: vec!["SIGKILL".into()],
        ..Options::default()
    }
}

/// The judgement of the faulty run with the lines of a suppressions file.
fn faulty_with(text: &str) -> Judgement {
    judged_with(&files(FAULTY_RUN), &suppressing_with(text, Severity::Warning))
}

fn counting(judgement: &Judgement) -> Vec<&str> {
    judgement.findings.iter().filter(|found| found.excuse.is_none()).map(|found| found.rule.as_str()).collect()
}

#[test]
fn a_suppressed_finding_does_not_fail_but_is_reported() {
    let judgement = faulty_with("freed-while-open:^/app/consumer$\nleaked-*:producer");
    assert_eq!((judgement.verdict, judgement.exit), (Verdict::Clean, 0));
    assert_eq!((judgement.findings.len(), counting(&judgement).len()), (3, 0), "{:#?}", judgement.findings);
    let used: Vec<_> = judgement.suppressions.iter().map(|used| (used.place.as_str(), used.count)).collect();
    assert_eq!(used, [("known.txt:1", 1), ("known.txt:2", 2)]);
    assert!(judgement.findings.iter().all(|finding| !finding.fails));
    let text = form(|out| report::text(&judgement, out, false));
    assert!(
        text.starts_with("urscope: clean (2 processes") && text.contains("\nsuppressions\n  3 findings suppressed\n"),
        "{text}"
    );
}

#[test]
fn a_suppression_of_another_rule_place_or_kind_excuses_nothing() {
    for text in ["double-put:*", "leaked-handle:^producer", "leaked-handle:kind=mapping", "freed-while-open:nobody"] {
        let judgement = faulty_with(text);
        assert_eq!(counting(&judgement).len(), 3, "{text}");
        assert_eq!(judgement.suppressions[0].count, 0);
        let output = form(|out| report::text(&judgement, out, false));
        assert!(output.contains(&format!("  known.txt:1 was not needed: {text}\n")), "{output}");
    }
}

#[test]
fn a_suppression_of_a_kind_covers_all_places() {
    assert_eq!(counting(&faulty_with("leaked-*:kind=mem-handle")), ["freed-while-open", "leaked-mapping"]);
}

/// The contract of `--write-suppressions`, for the findings of every rule.
#[test]
fn written_suppressions_make_the_same_run_clean() {
    for rule in RULES.iter().filter(|rule| rule.code != "no-calls-seen") {
        let page = Page::for_rule(rule);
        let traces = files(page.scenario("Bad trace").unwrap());
        let before = judged(&traces);
        assert!(!before.findings.is_empty(), "{}", rule.code);
        let after = judged_with(&traces, &suppressing_with(&suppressing(&before), Severity::Note));
        // A suppression does not change that calls are missing.
        let verdict = if rule.code == "calls-lost" { Verdict::NotJudged } else { Verdict::Clean };
        assert_eq!((after.verdict, counting(&after)), (verdict, vec![]), "{}", suppressing(&before));
        assert!(after.suppressions.iter().all(|used| used.count > 0), "{:?}", after.suppressions);
    }
}

#[test]
fn a_written_suppression_names_the_function() {
    let text = suppressing(&with_stacks());
    let freed = "\nfreed-while-open:here=^urUSMFree$ <- ^app::free(void\\*) in gpu core.cpp$ <- ^main in main.cpp$ && \
        there=^urIPCOpenMemHandleExp$ <- ^consumer$\n";
    assert!(text.contains(freed), "{text}");
    assert!(text.contains("\nleaked-handle:here=^urIPCGetMemHandleExp$ <- ^producer$ && there=none\n"), "{text}");
    let mut evil = with_stacks();
    evil.findings[0].process.stack[0].function = Some("f\n*:*\u{202e}".into());
    evil.findings[0].message = "m\n*:*".into();
    let text = suppressing(&evil);
    assert!(!text.lines().any(|line| line.starts_with("*:")) && !text.contains('\u{202e}'), "{text}");
    Suppressions::parse(Path::new("f"), &text).unwrap();
}

/// A function through which every free goes does not excuse the frees of others.
#[test]
fn a_written_suppression_excuses_no_second_mistake_through_the_same_helper() {
    let known = suppressing(&with_stacks());
    let Options { exemptions, .. } = suppressing_with(&known, Severity::Note);
    let excused = |change: &dyn Fn(&mut Judgement)| {
        let mut judgement = with_stacks();
        change(&mut judgement);
        exemptions.excuse(&mut judgement.findings);
        judgement.findings[0].excuse.is_some()
    };
    assert!(excused(&|_| {}), "{known}");
    assert!(excused(&|same| same.findings[0].process.stack[1].line = Some(99)), "lines change with every edit");
    for (frame, function) in [(1, "another_caller"), (0, "app::free(long)")] {
        let change = |second: &mut Judgement| second.findings[0].process.stack[frame].function = Some(function.into());
        assert!(!excused(&change), "{function}: {known}");
    }
    assert!(!excused(&|second| second.findings[0].other.as_mut().unwrap().stack[0].function = Some("other".into())));
    assert!(!excused(&|second| second.findings[0].other = None));
    assert!(!excused(&|second| second.findings[0].process.function = Some("urIPCPutMemHandleExp".into())));
    assert!(!excused(&|second| second.findings[0].process.stack.truncate(1)), "less is known of it");
}

#[test]
fn only_new_findings_fail() {
    let before = judged(&files("producer: get q -> i\nproducer: get q -> j\nproducer: put k"));
    let judgement = judged_with(&files(FAULTY_RUN), &exempting("", &before));
    assert_eq!(counting(&judgement), ["freed-while-open", "leaked-mapping"]);
    let compared = judgement.baseline.as_ref().unwrap();
    assert_eq!((compared.known, compared.new, compared.gone.len()), (1, 2, 1));
    assert_eq!(compared.gone[0].rule, "put-of-unknown");
    let text = form(|out| report::text(&judgement, out, false));
    assert!(
        text.contains("\nbaseline main.json\n  2 new, 1 fixed, 1 unchanged\n    fixed: error put-of-unknown: "),
        "{text}"
    );

    let same = judged_with(&files(FAULTY_RUN), &exempting("", &judged(&files(FAULTY_RUN))));
    assert_eq!((same.verdict, counting(&same).len()), (Verdict::Clean, 0));
    assert!(same.findings.iter().all(|finding| finding.excuse == Some(Excuse::Baseline)));
}

#[test]
fn a_baseline_covers_another_run_of_the_same_program() {
    let later = files_with(FAULTY_RUN, |header, _| (header.pid, header.start) = (header.pid + 5000, header.start + 77));
    let judgement = judged_with(&later, &exempting("", &judged(&files(FAULTY_RUN))));
    assert_eq!((judgement.verdict, counting(&judgement).len()), (Verdict::Clean, 0), "{:#?}", judgement.findings);
}

#[test]
fn more_frequent_and_more_severe_findings_are_new() {
    let twice = "p: get a -> h\nq: put x\nr: put x";
    let once = judged(&files("p: get a -> h\np: put x"));
    let again = files("p: get a -> h\np: put x\np/2: put h\np/2: put y");
    let judgement = judged_with(&again, &exempting("", &once));
    let compared = judgement.baseline.unwrap();
    assert_eq!(compared.known + compared.new, judgement.findings.len() as u64);
    let mut milder = judged(&files(twice));
    milder.findings.iter_mut().for_each(|finding| finding.severity = Severity::Note);
    let worse = judged_with(&files(twice), &exempting("", &milder));
    assert_eq!(worse.baseline.unwrap().known, 0);
}

#[test]
fn exemptions_do_not_make_a_run_without_ipc_calls_clean() {
    let judgement = judged_with(&files("p: alloc a 64"), &exempting("*:*", &judged(&files(FAULTY_RUN))));
    assert_eq!((judgement.verdict, judgement.baseline), (Verdict::NotJudged, None));
}
