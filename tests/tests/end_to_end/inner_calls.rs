//! The calls of Level Zero that the runtime makes inside of recorded ones, where a run records them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use urscope_tests::{Adapter, Outcome, Release, TestRun, Trace, perfetto, run::urscope};

use crate::on_both_adapters;

const FORMS: [&str; 2] = ["chrome", "binary"];

/// The calls with their outer ones as Perfetto's importer nests them.
const NESTED: &str = "select inside.name as name, outside.name as outer_name \
                      from slice inside left join slice outside on inside.parent_id = outside.id \
                      where inside.category = 'inner' order by inside.ts";

fn run(program: &str, adapter: Adapter, form: &str) -> TestRun {
    TestRun::new(program, Release::R2026_2, adapter).env("URSCOPE_FORMAT", form)
}

/// The inner calls of a trace: each with the function that it is inside of. Checks that it is inside of it, on its
/// thread.
fn inner(trace: &Trace) -> Vec<(String, String)> {
    let of = |record: &Value, field: &str| record[field].as_str().expect("a text").to_owned();
    let mut open: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    let mut found = Vec::new();
    for record in trace.records.iter().filter(|record| record["cat"] == "api" || record["cat"] == "inner") {
        let stack = open.entry(record["tid"].as_u64().expect("a thread")).or_default();
        if record["ph"] == "E" {
            let begun = stack.pop().unwrap_or_else(|| panic!("an end without a begin: {record}"));
            let inside = (&record["args"]["inside"], &record["args"]["call"]);
            assert_eq!(
                (&begun["name"], &begun["args"]["inside"], &begun["args"]["call"]),
                (&record["name"], inside.0, inside.1)
            );
            assert_eq!(begun["cat"], record["cat"], "{record}");
            continue;
        }
        if record["cat"] == "inner" {
            let outer =
                stack.iter().rev().find(|outer| outer["cat"] == "api").expect("an inner call is inside of a call");
            assert_eq!(record["args"]["inside"], outer["args"]["call"], "{record}");
            assert!(record["args"].get("call").is_none(), "{record}");
            found.push((of(record, "name"), of(outer, "name")));
        }
        stack.push(record.clone());
    }
    found
}

/// What a judge says of a run, without what differs from run to run.
#[derive(Debug, PartialEq, Eq)]
struct Judgement {
    verdict: String,
    violations: Vec<String>,
    /// The rules, and how often each was violated.
    found: Vec<(String, u64)>,
    /// How many findings the process had while it ran.
    live: usize,
    all_calls: u64,
    /// The calls of each process.
    calls: Vec<u64>,
}

fn judged(outcome: &Outcome) -> Judgement {
    let report = outcome.report();
    let mut found: Vec<_> = report
        .findings()
        .iter()
        .map(|finding| (finding["rule"].to_string(), finding["count"].as_u64().unwrap_or(0)))
        .collect();
    found.sort();
    let live = outcome
        .traces()
        .iter()
        .flat_map(|trace| trace.records.clone())
        .filter(|record| record["name"] == "finding")
        .count();
    let mut calls: Vec<_> =
        report.processes().iter().map(|process| process["calls"].as_u64().expect("a number")).collect();
    calls.sort_unstable();
    let verdict = report.verdict().to_owned();
    let violations = report.violations();
    let all_calls = report.all_calls();
    Judgement { verdict, violations, found, live, all_calls, calls }
}

on_both_adapters! {
    fn they_are_inside_of_the_calls_that_make_them(adapter) {
        for form in FORMS {
            let outcome = run("clean", adapter, form).option("--inner-calls").run();
            let traces = outcome.traces();
            traces.iter().for_each(Trace::assert_whole);
            let found: BTreeSet<_> = traces.iter().flat_map(inner).collect();
            for (name, outer) in [("zeMemGetIpcHandle", "urIPCGetMemHandleExp"), ("zeMemOpenIpcHandle", "urIPCOpenMemHandleExp")] {
                assert!(found.contains(&(name.into(), outer.into())), "{form}: {found:?}");
            }
            // libumf closes and puts when it needs to, in calls that share nothing.
            let ends = ["zeMemCloseIpcHandle", "zeMemPutIpcHandle"];
            assert!(found.iter().any(|(name, _)| ends.contains(&name.as_str())), "{form}: {found:?}");
            assert!(found.iter().all(|(_, outer)| outer.starts_with("ur")), "{form}: {found:?}");
            // The same file was got and opened, whatever libumf did to the handle.
            let fingerprint = |phase, call| {
                let of = |trace: &Trace| {
                    let is_it = |record: &&Value| record["cat"] == "inner" && record["ph"] == phase && record["name"] == call;
                    let found = trace.records.iter().find(is_it).map(|record| record["args"]["fingerprint"].clone());
                    found.filter(Value::is_string)
                };
                traces.iter().find_map(of).unwrap_or_else(|| panic!("{call} in {form} has no fingerprint"))
            };
            assert_eq!(fingerprint("E", "zeMemGetIpcHandle"), fingerprint("B", "zeMemOpenIpcHandle"), "{form}");

            // Perfetto nests them as the trace does, and so does the merged trace.
            let count: usize = traces.iter().map(|trace| inner(trace).len()).sum();
            let opinions = perfetto::opinions(&outcome.trace_files(), &[NESTED]);
            let merged = perfetto::opinion(&outcome.merged_trace(), &[NESTED]);
            for opinion in opinions.iter().chain([&merged]) {
                opinion.assert_ok();
                for row in opinion.rows(0) {
                    let nested = [&row["name"], &row["outer_name"]].map(|name| name.as_str().unwrap_or_default().to_owned());
                    assert!(found.contains(&nested.clone().into()), "{form}: {nested:?} in {found:?}");
                }
            }
            assert_eq!(opinions.iter().map(|opinion| opinion.rows(0).len()).sum::<usize>(), count, "{form}");
            assert_eq!(merged.rows(0).len(), count, "{form}");
        }
    }

    fn they_are_listed_below_the_calls_that_make_them(adapter) {
        let outcome = run("clean", adapter, "binary").option("--inner-calls").run();
        let folder = outcome.trace_folder();
        let listed = |options: &[&str]| {
            let ended = urscope(&[&["calls", "--format", "json"], options, &[folder.to_str().unwrap()]].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.collect::<Vec<_>>()
        };
        let all = listed(&[]);
        let get = all.iter().position(|line| line["function"] == "urIPCGetMemHandleExp").unwrap();
        assert_eq!((&all[get]["inside"], &all[get + 1]["inside"]), (&Value::Null, &all[get]["function"]), "{all:#?}");
        assert_eq!(all[get + 1]["function"], "zeMemGetIpcHandle");
        assert_eq!(["pid", "tid", "call"].map(|field| &all[get][field]), ["pid", "tid", "call"].map(|field| &all[get + 1][field]));
        let outer = listed(&["--outer"]);
        assert!(!outer.is_empty() && outer.iter().all(|line| line["inside"].is_null()), "{outer:#?}");
        assert_eq!(listed(&["--level", "ur"]), outer);
        let inner = listed(&["--level", "ze"]);
        assert_eq!(inner.len() + outer.len(), all.len());
        assert!(inner.iter().all(|line| line["inside"].as_str().is_some_and(|outer| outer.starts_with("ur"))), "{inner:#?}");
        let text = urscope(&["calls", folder.to_str().unwrap()]).stdout;
        let inset = text.lines().filter(|line| line.contains(")    zeMem")).count();
        assert_eq!(inset, inner.len(), "{text}");
        assert_eq!(text.matches("  inside ur").count(), inner.len(), "{text}");
    }

    /// Nothing is judged twice, also where something is wrong.
    fn the_verdict_is_that_of_a_run_without_them(adapter) {
        for program in ["clean", "mistakes double_put", "mistakes double_close", "scenario use_after_put", "mistakes leaked_mapping", "free_while_open"] {
            // What differs between the forms is tried by the first one.
            for form in FORMS.iter().copied().skip(usize::from(program != "clean")) {
                let plain = run(program, adapter, form).run();
                let with = run(program, adapter, form).option("--inner-calls").run();
                assert_eq!((with.code, &with.stdout), (plain.code, &plain.stdout), "{program} {form}");
                assert_eq!(judged(&with), judged(&plain), "{program} {form}");
                assert!(with.traces().iter().any(|trace| !inner(trace).is_empty()), "{program} {form}");
                assert!(plain.traces().iter().all(|trace| inner(trace).is_empty()), "{program} {form}");
            }
        }
    }
}

/// Only this adapter shares physical memory and events.
#[test]
fn those_of_physical_memory_and_of_events_are_recorded_too() {
    for (program, calls) in [
        ("scenario physical_side_by_side", [("zePhysicalMemGetProperties", "Get"), ("zePhysicalMemCreate", "Open")]),
        (crate::event::ORDERS[0], [("GetIpcHandle", "Get"), ("OpenIpcHandle", "Open")]),
    ] {
        let run = || run(program, Adapter::V2, "binary");
        let plain = run().run();
        let with = run().option("--inner-calls").run();
        assert_eq!(judged(&with), judged(&plain), "{program}");
        assert_eq!(with.report().verdict(), "clean", "{program}");
        let traces = with.traces();
        let found: BTreeSet<_> = traces.iter().flat_map(inner).collect();
        for (name, does) in calls {
            let is_it =
                |(call, outer): &(String, String)| call.ends_with(name) && outer.starts_with(&format!("urIPC{does}"));
            assert!(found.iter().any(is_it), "{program}: {found:?}");
        }
        assert!(
            traces
                .iter()
                .flat_map(|trace| trace.calls("B"))
                .all(|call| call["name"].as_str().unwrap().starts_with("ur"))
        );
    }
}
