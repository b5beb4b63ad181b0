//! A rule from outside of the catalogue: registered like any other, with a state of its own.

use std::path::{Path, PathBuf};
use std::{collections::HashMap, fs};

use urscope_rule_pages::scenario::Scenario;
use urscope_rules::tracker::fact::{Fact, FactKind, What};
use urscope_rules::{Check, Checker, Finding, Place, ProcessId, Rule, RuleState, Severity, When, catalog::RULES};

/// A process must not get more handle data than this.
const MOST: usize = 2;

static MANY_GETS: Rule = Rule {
    code: "many-gets",
    severity: Severity::Note,
    when: When::End,
    title: "a process gets more handle data than this test allows",
    sentence: "got more handle data than this test allows",
    facts: &[FactKind::Exported, FactKind::ProcessEnded],
    check: Check::Stateful(|| Box::new(Gets::default())),
};

#[derive(Clone, Debug, Default)]
struct Gets(HashMap<ProcessId, Vec<Place>>);

impl RuleState for Gets {
    fn check(&mut self, fact: &Fact<'_>, found: &mut Vec<Finding>) {
        match fact.what {
            What::Exported(_) => self.0.entry(fact.at.process).or_default().push(fact.at),
            What::ProcessEnded(_) => {
                let gets = self.0.remove(&fact.at.process).unwrap_or_default();
                if gets.len() > MOST {
                    let message = format!("{} handles were got", gets.len());
                    found.push(Finding::of_call(&MANY_GETS, gets[MOST], message).advice("get fewer"));
                }
            }
            _ => {}
        }
    }
}

fn found(scenario: &str) -> Vec<Finding> {
    let rules = RULES.iter().copied().chain([&MANY_GETS]);
    scenario.parse::<Scenario>().unwrap().play_with(Checker::with_rules(rules)).unwrap()
}

#[test]
fn a_rule_from_outside_fires_beside_the_catalogue() {
    let gets = |process: &str, count: u32| -> String {
        let get = |n| format!("{process}: alloc {process}a{n} 64\n{process}: get {process}a{n} -> {process}h{n}\n");
        (0..count).map(|n| get(n) + &format!("{process}: put {process}h{n}\n")).collect()
    };
    assert!(found(&gets("p", 2)).is_empty());
    let findings = found(&format!("{}p: put ph0", gets("p", 3)));
    let codes: Vec<_> = findings.iter().map(|finding| finding.rule.code).collect();
    assert_eq!(codes, ["double-put", "many-gets"]);
    assert_eq!(findings[1].at.call.map(u64::from), Some(8), "the third get is the eighth call");
    // Another process has a count of its own.
    assert!(found(&format!("{}{}", gets("p", 2), gets("q", 2))).is_empty());
}

#[test]
fn a_copy_of_the_checker_goes_on_by_itself() {
    let mut checker = Checker::with_rules([&MANY_GETS]);
    let before = checker.clone();
    let scenario: Scenario = "p: get a -> h\np: get a -> i\np: get a -> j".parse().unwrap();
    assert_eq!(scenario.play_with(before.clone()).unwrap().len(), 1);
    assert_eq!(scenario.play_with(before).unwrap().len(), 1, "the first copy has left no trace in the second");
    assert!(checker.take().is_empty());
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn a_rule_is_its_file_or_folder_and_its_line_in_the_register() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    let catalog = source.join("catalog");
    let sources: Vec<_> = files(&source).into_iter().map(|path| (fs::read_to_string(&path).unwrap(), path)).collect();
    for rule in RULES {
        let name = rule.code.replace('-', "_");
        let is_own = |path: &Path| path == catalog.join(format!("{name}.rs")) || path.starts_with(catalog.join(&name));
        let named = |text: &str| {
            let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.filter(|word| *word == name).count()
        };
        for (text, path) in sources.iter().filter(|(_, path)| !is_own(path)) {
            let lines = named(text);
            let allowed = match (path == &catalog.join("mod.rs"), rule.code) {
                // The rule of the run without a call has a name of its own for those that call it no finding.
                (true, "no-calls-seen") => 2,
                (register, _) => usize::from(register),
            };
            // `size_mismatch` or `churn` may be an ordinary word elsewhere: what counts is a path to the module.
            let is_path = text.contains(&format!("{name}::")) || text.contains(&format!("::{name}"));
            assert!(lines <= allowed || !is_path, "{} names the rule {}", path.display(), rule.code);
        }
    }
}
