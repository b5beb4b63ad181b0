//! How tests play scenarios.

pub(crate) mod correct;
pub(crate) mod overlapping;

use std::collections::BTreeSet;

use proptest::{prelude::*, strategy::ValueTree as _};
use urscope_rule_pages::scenario::Scenario;
use urscope_rules::Finding;

/// What is found in a scenario.
pub(crate) fn play(scenario: &str) -> Vec<Finding> {
    scenario
        .parse::<Scenario>()
        .and_then(|scenario| scenario.play())
        .unwrap_or_else(|error| panic!("{error} of\n{scenario}"))
}

/// Notes about the whole run, which nearly every scenario for another rule has: handle data that no process opens, or
/// that its producer opens.
pub(crate) const OF_RUNS: [&str; 2] = ["get-without-open", "open-in-producer"];

/// The notes about calls that fail, which histories have by chance.
const REFUSED: [&str; 2] = ["refused-call", "refused-open"];

/// Whether a rule only counts where it is expected.
fn is_by_the_way(code: &str) -> bool {
    OF_RUNS.contains(&code) || REFUSED.contains(&code)
}

/// Plays a scenario and expects exactly these findings. Notes about the whole run and about calls that fail only count
/// if they are expected.
#[track_caller]
pub(crate) fn expect(scenario: &str, codes: &[&str]) -> Vec<Finding> {
    let mut found = play(scenario);
    found.retain(|finding| codes.contains(&finding.rule.code) || !is_by_the_way(finding.rule.code));
    assert_eq!(found.iter().map(|finding| finding.rule.code).collect::<Vec<_>>(), codes, "{found:#?}");
    found
}

/// The text of a history, and the rules of its findings in the order of names, without `no-calls-seen` and without
/// notes about the whole run.
pub(crate) fn history<'a>(lines: impl Iterator<Item = &'a str>) -> (String, Vec<&'static str>) {
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut codes: Vec<_> = play(&text).iter().map(|finding| finding.rule.code).collect();
    codes.retain(|code| *code != "no-calls-seen" && !is_by_the_way(code));
    codes.sort_unstable();
    (text, codes)
}

/// The random numbers that choose a history.
pub(crate) fn choices() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 100..800)
}

/// One of those that fit.
pub(crate) fn pick<T>(all: &[T], which: usize, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let fitting: Vec<_> = (0..all.len()).filter(|index| fits(&all[*index])).collect();
    fitting.get(which % fitting.len().max(1)).copied()
}

/// The lowest free name of a sort, so that addresses are used again as soon as possible.
pub(crate) fn name(names: &mut BTreeSet<String>, sort: &str, process: usize) -> String {
    let mut all = (0..usize::MAX).map(|number| format!("{sort}{process}x{number}"));
    let name = all.find(|name| !names.contains(name)).unwrap();
    names.insert(name.clone());
    name
}

/// Requires of some histories that they have 40 lines on average, and that each fault is possible in more than `often`
/// of them.
pub(crate) fn every_fault_occurs<History>(
    [histories, faults, often]: [usize; 3],
    of: impl Fn(Vec<u32>) -> History,
    lines: impl Fn(&History) -> usize,
    is_possible: impl Fn(&mut History, usize) -> bool,
) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut all = 0;
    let mut counts = vec![0; faults];
    for _ in 0..histories {
        let choices = choices().new_tree(&mut runner).unwrap().current();
        all += lines(&of(choices.clone()));
        for (fault, count) in counts.iter_mut().enumerate() {
            *count += usize::from(is_possible(&mut of(choices.clone()), fault));
        }
    }
    assert!(all > histories * 40, "{all} lines");
    assert!(counts.iter().all(|count| *count > often), "{counts:?}");
}
