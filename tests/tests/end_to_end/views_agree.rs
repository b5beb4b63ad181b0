//! Every view of a run gives the same figures: the report, the lists of calls and holders, the statistics, the history
//! of each handle, the display of the terminal and the page.
//!
//! [`differences`] is called by the tests that run all programs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use urscope_tests::view_server::ViewServer;
use urscope_tests::{Outcome, run};

/// Programs with wrong handle data that an implementation accepts: what is left of that is in no view as it is in
/// another.
const HOSTILE: [&str; 5] = [
    "sharing damaged_handle",
    "ur_memory apart",
    "ur_violations put_as_an_event",
    "ze_sharing descriptor-as-handle",
    "ze_sharing descriptor-of-handle",
];

/// Whether a run has traces, and what is in them is what the program meant.
pub(crate) fn are_comparable(way: &str, outcome: &Outcome) -> bool {
    !HOSTILE.contains(&way) && !outcome.trace_files().is_empty()
}

/// What a command answers about a run, as JSON.
fn answer(arguments: &[&str], folder: &str) -> Value {
    let ended = run::urscope(&[arguments, &["--format", "json", folder]].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", ended.stderr))
}

/// The calls that `urscope calls` lists.
fn listed(arguments: &[&str], folder: &str) -> Vec<Value> {
    let ended = run::urscope(&[&["calls", "--format", "json"], arguments, &[folder]].concat());
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a call in JSON")).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn sum(values: &[Value], field: &str) -> u64 {
    values.iter().map(|value| number(&value[field])).sum()
}

/// How often each text occurs.
fn counts<'a>(texts: impl Iterator<Item = &'a Value>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text.as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts
}

/// The kinds of the lifetimes of the page that no call ended.
fn left_over(page: &ViewServer) -> Vec<String> {
    let part = page.json("api/lives");
    let columns = &part["columns"];
    let count = list(&columns["id"]).len();
    assert_eq!(count as u64, number(&part["total"]), "the page has all lifetimes");
    let named = |names: &str, column: &str, at: usize| {
        let number = columns[column][at].as_u64()? as usize;
        part[names][number].as_str().map(str::to_owned)
    };
    let is_left = |at: &usize| match named("how", "how", *at).as_deref() {
        Some(how) => ["exit", "kill", "exec", "end of trace"].contains(&how),
        None => true,
    };
    (0..count).filter(is_left).map(|at| named("kinds", "kind", at).expect("a kind")).collect()
}

/// Figures that should be equal, and are not.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, one: &T, other: &T) {
        if one != other {
            self.0.push(format!("{what}: {one:?} and {other:?}"));
        }
    }
}

/// Compares the figures of all views of a run that has ended; returns how they differ.
pub(crate) fn differences(outcome: &Outcome) -> Vec<String> {
    let mut found = Differences::default();
    let folder = outcome.trace_folder();
    let folder = folder.to_str().expect("a path in UTF-8");
    let report = answer(&["check"], folder);
    let stats = answer(&["stats"], folder);
    let holders = answer(&["holders"], folder);
    let top = answer(&["top", "--once"], folder);
    let calls = listed(&["--outer"], folder);
    let page = ViewServer::by(["view", "--no-open", folder]);
    let run = page.until("api/run", "the whole run", |run| run["running"] == false);

    // The calls.
    let of_function = counts(calls.iter().map(|call| &call["function"]));
    let judged: BTreeMap<String, u64> =
        report["calls"].as_object().expect("calls").iter().map(|(name, count)| (name.clone(), number(count))).collect();
    found.compare("functions of calls and check", &of_function, &judged);
    let total = calls.len() as u64;
    found.compare("calls of stats and calls", &sum(list(&stats["totals"]), "calls"), &total);
    found.compare("calls of the page and calls", &number(&run["calls"]), &total);
    found.compare("calls of processes and calls", &sum(list(&report["processes"]), "calls"), &total);
    let failed = calls.iter().filter(|call| call["succeeded"] == false).count() as u64;
    let errors = |calls: &Value| -> u64 {
        calls["errors"].as_object().map_or(0, |errors| errors.values().filter_map(Value::as_u64).sum())
    };
    let of_stats = list(&stats["totals"]).iter().map(|calls| errors(calls) + number(&calls["unreturned"])).sum();
    found.compare("errors of calls and stats", &failed, &of_stats);
    found.compare("errors of calls and the page", &failed, &number(&page.json("api/calls?errors=1")["matching"]));
    let sharing = listed(&["--outer", "--ipc"], folder).len() as u64;
    found.compare("sharing calls of calls and the page", &sharing, &number(&page.json("api/calls?ipc=1")["matching"]));
    found.compare("sharing calls of calls and check", &sharing, &sum(list(&report["processes"]), "ipc_calls"));

    // The findings.
    found.compare("findings of the page", &report["findings"], &page.json("api/check")["findings"]);
    found.compare("findings of top", &report["findings"], &top["judgement"]["findings"]);

    // What is held.
    found.compare("holders of top", &holders, &top["holders"]);
    found.compare("statistics of top", &stats, &top["stats"]);
    found.compare("holders of the page", &holders, &page.json("api/holders"));
    found.compare("statistics of the page", &stats, &page.json("api/stats"));
    let held = list(&holders["held"]);
    let handles = sum(held, "handles");
    let opens: u64 = held.iter().map(|held| sum(list(&held["holders"]), "opens")).sum();
    let parts = answer(&["holders", "--by", "process"], folder);
    let parts_of = |field| sum(list(&parts["parts"]), field);
    found.compare("holders by process", &(parts_of("handles"), parts_of("opens")), &(handles, opens));
    found.compare("openings of stats and holders", &sum(list(&stats["shares"]), "open"), &opens);
    let lost = list(&holders["lost"]).iter().filter(|lost| lost["fingerprint"].is_string());
    let is_handle = |kind: &str| kind.contains("handle");
    let lost: Vec<bool> = lost.filter_map(|lost| lost["object"].as_str()).map(is_handle).collect();
    let left: Vec<bool> = left_over(&page).iter().map(|kind| is_handle(kind)).collect();
    let of_kind = |all: &[bool], handles: bool| all.iter().filter(|it| **it == handles).count() as u64;
    for (what, handles, count) in [("handles", true, handles), ("openings", false, opens)] {
        let held = count + of_kind(&lost, handles);
        found.compare(&format!("{what} that are left on the page, and held"), &of_kind(&left, handles), &held);
    }

    // The history of each handle, without the allocation of its memory.
    let fingerprints: BTreeSet<&str> = calls
        .iter()
        .flat_map(|call| ["arguments", "answers"].map(|side| &call[side]["fingerprint"]))
        .filter_map(Value::as_str)
        .collect();
    for fingerprint in fingerprints.into_iter().take(3) {
        let ended = run::urscope(&["handle", "--format", "json", fingerprint, folder]);
        let Ok(history) = serde_json::from_str::<Value>(&ended.stdout) else { continue };
        let name = |place: &Value| (number(&place["pid"]), number(&place["call"]));
        let history: BTreeSet<_> = list(&history["moments"]).iter().map(|moment| name(&moment["place"])).collect();
        let about: BTreeSet<_> = listed(&["--outer", "--handle", fingerprint], folder).iter().map(name).collect();
        let of_page = page.json(&format!("api/calls?fingerprint={fingerprint}"));
        found.compare("calls of a handle", &(about.len() as u64), &number(&of_page["matching"]));
        if !about.is_subset(&history) {
            found.0.push(format!("{fingerprint}: calls has {about:?}, handle {history:?}"));
        }
    }
    found.0
}
