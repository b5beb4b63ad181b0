//! Every rule's page: whole, true, and in `docs/rules.md`.

use std::collections::BTreeSet;

use urscope_rule_pages::{Page, rules_counted, rules_md};
use urscope_rules::{Severity, catalog::RULES};

use crate::scenarios::play;

/// Rules whose bad trace cannot be without a finding of another rule: of that which is allowed until something else
/// follows, or of what follows.
const BESIDE: [(&str, &str); 4] = [
    ("lost-handles", "freed-while-exported"),
    ("unreturned-gets", "freed-while-exported"),
    ("refused-call", "invalid-argument"),
    ("stale-mapping", "freed-while-open"),
];

#[test]
fn every_bad_trace_violates_its_rule_once_and_every_good_trace_none() {
    for rule in RULES {
        let page = Page::for_rule(rule);
        let mut bad = play(page.scenario("Bad trace").expect("a bad trace"));
        bad.retain(|finding| !BESIDE.contains(&(rule.code, finding.rule.code)));
        let codes: Vec<_> = bad.iter().map(|finding| finding.rule.code).collect();
        assert_eq!(codes, [rule.code], "the bad trace of {}: {bad:#?}", rule.code);
        assert_eq!(bad[0].severity, rule.severity, "{}", rule.code);
        let mut good = play(page.scenario("Good trace").expect("a good trace"));
        // What a call that fails changes is a part of some rules.
        good.retain(|finding| finding.rule.code != "refused-call" || rule.code == "refused-call");
        assert!(good.is_empty(), "the good trace of {}: {good:#?}", rule.code);
    }
}

#[test]
fn every_page_has_its_headings_in_order() {
    for rule in RULES {
        let page = Page::for_rule(rule);
        let headings: Vec<_> = page.text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        assert_eq!(headings, Page::HEADINGS, "{}", rule.code);
        for heading in Page::HEADINGS {
            assert!(page.section(heading).is_some_and(|text| text.len() > 20), "{}: {heading}", rule.code);
        }
    }
}

/// Rules whose example is a sentence, and why.
const WITHOUT_CODE: [(&str, &str); 1] = [("slow-call", "what delays a call is outside of the program's code")];

#[test]
fn every_example_is_short_and_wrong_at_a_marked_line() {
    for rule in RULES {
        let page = Page::for_rule(rule);
        let Some((language, [wrong, fixed])) = page.example() else {
            assert!(WITHOUT_CODE.iter().any(|(code, _)| *code == rule.code), "{} has no example", rule.code);
            continue;
        };
        assert!(["cpp", "sh"].contains(&language), "{}: {language}", rule.code);
        assert!(page.section("Example").unwrap().contains("```\n\nFixed:\n\n```"), "{}", rule.code);
        assert_ne!(wrong, fixed, "{}", rule.code);
        let marks = |code: &str| ["Wrong", "Noted"].iter().map(|mark| code.matches(mark).count()).sum::<usize>();
        assert_eq!((marks(wrong), marks(fixed)), (1, 0), "{}", rule.code);
        for code in [wrong, fixed] {
            assert!((1..=10).contains(&code.lines().count()), "{}: {code}", rule.code);
            // Two of these stand beside each other in 100 columns.
            assert!(code.lines().all(|line| line.chars().count() <= 47), "{}: {code}", rule.code);
        }
    }
}

#[test]
fn every_file_is_in_the_register_under_its_own_name() {
    let beside = BTreeSet::from(["mod", "memory", "wording"].map(str::to_owned));
    let files: BTreeSet<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../src/catalog"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.code.replace('-', "_")).collect();
    assert_eq!(files.difference(&beside).cloned().collect::<BTreeSet<_>>(), rules);
    assert!(RULES.is_sorted_by_key(|rule| rule.code), "sort the lines of the register by name");
}

#[test]
fn titles_messages_and_advice_are_lower_case_without_a_final_stop() {
    for rule in RULES {
        let found = play(Page::for_rule(rule).scenario("Bad trace").unwrap());
        for text in [rule.title, &found[0].message, &found[0].advice] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", rule.code);
            let first = text.split(' ').next().unwrap();
            assert!(first == "SYCL" || !first.starts_with(char::is_uppercase), "{}: {text}", rule.code);
            assert!(!text.contains(" ,") && !text.contains("  "), "{}: {text}", rule.code);
        }
    }
}

#[test]
fn rules_md_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, rules_md()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == rules_md(),
        "docs/rules.md is old: BLESS=1 cargo test -p urscope-rule-pages renews it"
    );
}

#[test]
fn the_readme_counts_the_rules() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, rest) = readme.split_once("<!-- rules: begin").unwrap();
    let (marker, rest) = rest.split_once("-->\n").unwrap();
    let (sentence, after) = rest.split_once("<!-- rules: end -->").unwrap();
    if std::env::var_os("BLESS").is_some() {
        let fresh = format!("{before}<!-- rules: begin{marker}-->\n{}<!-- rules: end -->{after}", rules_counted());
        std::fs::write(path, fresh).unwrap();
        return;
    }
    assert_eq!(sentence, rules_counted(), "README.md is old: BLESS=1 cargo test -p urscope-rule-pages renews it");
}

/// What the specification of Level Zero leaves to the driver.
#[test]
fn level_zero_allows_what_sycl_forbids() {
    let libraries = "
        producer: alloc p 4096 ze
        producer: get p -> h ze
        consumer: open h -> m ze
        producer: free p ze
        consumer: close m ze";
    let found = play(libraries);
    let codes: Vec<_> = found.iter().map(|finding| (finding.rule.code, finding.severity)).collect();
    assert_eq!(codes, [("freed-while-open", Severity::Note)]);
    let kept = "
        producer: alloc p 4096 ze
        producer: get p -> h ze
        consumer: open h -> m ze";
    let found = play(kept);
    assert!(found.iter().all(|finding| finding.severity == Severity::Note), "{found:?}");
    let codes: Vec<_> = found.iter().map(|finding| finding.rule.code).collect();
    assert!(codes.contains(&"leaked-mapping") && !codes.contains(&"leaked-handle"), "{codes:?}");
}
