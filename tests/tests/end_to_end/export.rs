//! Perfetto draws the exported timeline of a run completely, with flow arrows between processes. DuckDB reads the
//! exported tables.

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::{Value, json};
use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, launcher, perfetto, python_with, run};

use crate::event::ORDERS;
use crate::on_both_adapters;

/// The flows, with the names of their two ends and whether these are in different processes.
const FLOWS: &str = "select out.name as a, into_.name as b, \
    (select upid from thread_track join thread using (utid) where thread_track.id = out.track_id) as p, \
    (select upid from thread_track join thread using (utid) where thread_track.id = into_.track_id) as q \
    from flow join slice out on slice_out = out.id join slice into_ on slice_in = into_.id order by into_.ts, a, b, p, q";

fn exported(outcome: &Outcome, to: &Path) {
    let traces = outcome.trace_folder();
    let file = to.to_str().unwrap();
    let ended = run::urscope(&["export", traces.to_str().unwrap(), "-o", file]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
}

/// The names of the processes and threads, in the order in which they are shown, and how many values each counter has.
const NAMES: &str = "select name, pid from process where pid > 0 order by pid";
const COUNTERS: &str = "select track.name as name, process.pid as pid, count(*) as n, max(value) as most from counter \
    join process_counter_track track on track.id = track_id join process using (upid) group by 1, 2 order by 1, 2";
const SLICES: &str = "select name, category, count(*) as n, sum(dur) as took from slice group by 1, 2 order by 1, 2";

/// Exports a run, loads it in Perfetto, and returns the flows.
fn drawn(outcome: &Outcome) -> Vec<(String, String, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let chrome = folder.path().join("same.json");
    let native = folder.path().join("same.pftrace.gz");
    exported(outcome, &chrome);
    exported(outcome, &native);
    let queries = [FLOWS, NAMES, COUNTERS, SLICES];
    let [chrome, native] = [chrome, native].map(|file| perfetto::opinion(&unpacked(&file), &queries));
    native.assert_ok();
    for count in ["slices", "unfinished", "instants", "flows", "counters", "processes", "threads"] {
        assert_eq!(native.count(count), chrome.count(count), "{count} in Perfetto's own form");
    }
    for (index, query) in queries.iter().enumerate() {
        assert_eq!(native.rows(index), chrome.rows(index), "{query}");
    }
    let names: Vec<_> = native.rows(1).iter().map(|row| row["name"].as_str().unwrap_or_default()).collect();
    assert!(names.iter().any(|name| name.contains(", producer")), "{names:?}");
    assert!(native.rows(2).iter().any(|row| row["name"] == "descriptors open"), "{:?}", native.rows(2));

    let plain = folder.path().join("run.json");
    let packed = folder.path().join("run.json.gz");
    exported(outcome, &plain);
    exported(outcome, &packed);
    assert!(fs::metadata(&packed).unwrap().len() < fs::metadata(&plain).unwrap().len());
    let timeline: Value = serde_json::from_str(&fs::read_to_string(&plain).unwrap()).expect("strict JSON");
    let events = timeline["traceEvents"].as_array().unwrap();
    let count = |test: &dyn Fn(&Value) -> bool| events.iter().filter(|event| test(event)).count() as u64;
    let phase = |phase: &'static str| move |event: &Value| event["ph"] == phase;

    let opinion = perfetto::opinion(&plain, &[FLOWS]);
    opinion.assert_ok();
    // Accesses of commands that the device has executed.
    let bars = count(&|event| event["ph"] == "X" && event["cat"] == "urscope");
    let calls = count(&phase("X")) + count(&phase("B")) - bars;
    let lives = count(&phase("b"));
    let over = count(&phase("e"));
    let findings = count(&phase("i"));
    assert_eq!(opinion.count("slices"), calls + bars + lives + findings);
    assert_eq!(opinion.count("unfinished"), count(&phase("B")) + lives - over);
    assert_eq!(opinion.count("flows"), count(&|event| event["flow_in"] == true));
    let values = events.iter().filter(|event| event["ph"] == "C").map(|event| event["args"].as_object().unwrap().len());
    assert_eq!(opinion.count("counters"), values.sum::<usize>() as u64);

    let report = outcome.report();
    let judged: u64 = report.processes().iter().map(|process| process["calls"].as_u64().unwrap()).sum();
    // Each finding is drawn at the thread of each occurrence, and once on the track of all findings.
    let occurrences = report.findings().iter().map(|finding| finding["occurrences"].as_array().map_or(1, Vec::len));
    let drawn = report.findings().len() + occurrences.sum::<usize>();
    assert_eq!((calls, findings), (judged, drawn as u64));
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let flow = |row: &Value| (text(row, "a"), text(row, "b"), row["p"] != row["q"] && !row["p"].is_null());
    opinion.rows(0).iter().map(flow).collect()
}

/// Unpacks a compressed file.
fn unpacked(file: &Path) -> PathBuf {
    if file.extension().is_none_or(|extension| extension != "gz") {
        return file.to_owned();
    }
    let ended = Command::new("gzip").arg("--decompress").arg("--force").arg(file).status().expect("gzip is there");
    assert!(ended.success());
    file.with_extension("")
}

fn flow(from: &str, to: &str, between_processes: bool) -> (String, String, bool) {
    (from.to_owned(), to.to_owned(), between_processes)
}

on_both_adapters! {
    fn the_sharing_of_memory_is_drawn_with_its_arrows(adapter) {
        let outcome = TestRun::new("free_while_open", Release::R2026_2, adapter).run();
        assert_eq!(drawn(&outcome), [
            flow("urIPCGetMemHandleExp", "urIPCOpenMemHandleExp", true),
            flow("consumer, free_while_open.cpp:20 (8 MiB)", "urIPCCloseMemHandleExp", false),
        ]);
    }

    fn what_was_cut_short_is_drawn_to_its_end(adapter) {
        let flows = drawn(&TestRun::new("scenario killed_producer", Release::R2026_2, adapter).run());
        assert!(flows.contains(&flow("urIPCGetMemHandleExp", "urIPCOpenMemHandleExp", true)), "{flows:?}");
    }

    fn many_threads_are_drawn(adapter) {
        let flows = drawn(&TestRun::new("clean_threads 100", Release::R2026_2, adapter).run());
        assert!(flows.len() > 10, "{flows:?}");
    }
}

#[test]
fn physical_memory_and_events_are_drawn_alike() {
    let physical = drawn(&TestRun::new("scenario physical_side_by_side", Release::R2026_2, Adapter::V2).run());
    assert!(physical.contains(&flow("urIPCGetPhysMemHandleExp", "urIPCOpenPhysMemHandleExp", true)), "{physical:?}");
    // Each line of a scenario has a caller of its own; all frames below it are wrappers.
    let from = format!(", scenario_steps.hpp:{} (8 KiB)", apps::line_of("scenario_steps.hpp", "  call();"));
    let is_it = |name: &str| name.starts_with("app::at_line<") && name.ends_with(&from);
    let mut flows = physical.iter();
    assert!(flows.any(|flow| is_it(&flow.0) && flow.1 == "urIPCClosePhysMemHandleExp" && !flow.2), "{physical:?}");
    let event = drawn(&TestRun::new(ORDERS[0], Release::R2026_2, Adapter::V2).run());
    assert!(event.contains(&flow("urIPCGetEventHandleExp", "urIPCOpenEventHandleExp", true)), "{event:?}");
    let from = format!(", scenario.cpp:{}", apps::line_of("scenario.cpp", "ipc_event::open("));
    let mut flows = event.iter();
    assert!(flows.any(|flow| flow.0.ends_with(&from) && flow.1 == "urEventRelease" && !flow.2), "{event:?}");
}

/// What is drawn of commands that nothing orders.
const UNORDERED: &str = "select slice.name as name, process.name as process from slice join process_track on track_id = process_track.id \
    join process using (upid) where category = 'race' order by slice.ts, slice.id";

#[test]
fn commands_that_nothing_orders_are_drawn_with_the_time_in_which_nothing_can_have_ordered_them() {
    let outcome = TestRun::new("sycl_order told_first", Release::R2026_2, Adapter::V2).run();
    drawn(&outcome);
    let opinion = perfetto::opinion(&outcome.merged_trace(), &[UNORDERED]);
    let bar = |row: &Value| format!("{}: {}", row["process"].as_str().unwrap(), row["name"].as_str().unwrap());
    assert_eq!(
        opinion.rows(0).iter().map(bar).collect::<Vec<_>>(),
        [
            "sycl_order, producer: urEnqueueUSMFill: enqueued until known to be over",
            "sycl_order, consumer: urEnqueueUSMMemcpy: enqueued until known to be over",
            "sycl_order, consumer: nothing orders the two commands",
        ]
    );
}

/// The named slices with their places in the source, the processes, and the track of all findings.
const PLACED: &str = "select name, coalesce(extract_arg(arg_set_id, 'args.file'), extract_arg(arg_set_id, 'debug.file')) as file, \
    coalesce(extract_arg(arg_set_id, 'args.line'), extract_arg(arg_set_id, 'debug.line')) as line \
    from slice where category = 'import' order by ts";
const NAMED: &str = "select name from process where pid > 0 order by name";
const FOUND: &str =
    "select name from slice where category = 'finding' and track_id not in (select id from thread_track)";

#[test]
fn slices_have_their_call_sites_below_a_track_of_all_findings() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let ranks = ["-launcher", "fork", "-n", "11"];
    let start = ranks.iter().fold(TestRun::of_program(launcher("mpich-5.0.2")), |run, word| run.arg(*word));
    let start = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).arg("leak");
    let outcome = start.adapter(Adapter::V2).run();
    for name in ["run.json", "run.pftrace"] {
        let file = files.path().join(name);
        exported(&outcome, &file);
        let opinion = perfetto::opinion(&file, &[PLACED, NAMED, FOUND]);
        opinion.assert_ok();
        assert_eq!(opinion.rows(0).len(), 10, "{name}: an opening in each of the other ranks");
        for slice in opinion.rows(0) {
            let line = slice["line"].as_u64().unwrap();
            assert_eq!(slice["name"], format!("main, in a lambda, clean_ranks.cpp:{line} (1 MiB)"), "{name}");
            assert!(slice["file"].as_str().unwrap().ends_with("/tests/apps/clean_ranks.cpp"), "{name}: {slice}");
        }
        let names: Vec<_> = opinion.rows(1).iter().map(|row| row["name"].as_str().unwrap()).collect();
        // Perfetto shows processes with equally many slices in the order of their names.
        let ranks: Vec<_> = (0..11).map(|rank| format!("rank {rank:02}: clean_ranks")).collect();
        assert!(names.len() == 11 && names.iter().zip(&ranks).all(|(name, rank)| name.starts_with(rank)), "{names:?}");
        let found: Vec<_> = opinion.rows(2).iter().map(|row| row["name"].as_str().unwrap()).collect();
        let leak = found.iter().any(|name| name.contains(" opened 1 MiB and never closed it: clean_ranks.cpp:"));
        assert!(leak && found.len() == outcome.report().findings().len(), "{name}: {found:?}");
    }
}

on_both_adapters! {
    /// `urscope run` leaves the timeline that `urscope export` writes, and says so. No reader of the directory mentions
    /// it.
    fn a_run_leaves_its_merged_trace(adapter) {
        for (form, ending) in [(None, "fxt"), (Some("chrome"), "json")] {
            let test_run = TestRun::new("free_while_open", Release::R2026_2, adapter);
            let outcome = form.into_iter().fold(test_run, |test_run, form| test_run.env("URSCOPE_FORMAT", form)).run();
            let traces = outcome.trace_files();
            assert!(traces.len() == 2 && traces.iter().all(|file| file.extension().unwrap() == ending), "{traces:?}");

            let merged = outcome.merged_trace();
            assert!(outcome.stderr.contains("; open traces/merged.json with https://"), "{}", outcome.stderr);
            assert_eq!(fs::metadata(&merged).unwrap().permissions().mode() & 0o777, 0o600);
            let folder = tempfile::tempdir().unwrap();
            let again = folder.path().join("again.json");
            exported(&outcome, &again);
            assert!(fs::read(&merged).unwrap() == fs::read(&again).unwrap(), "{} differs", merged.display());
            let opinion = perfetto::opinion(&merged, &[]);
            opinion.assert_ok();
            assert_eq!((opinion.count("processes"), opinion.count("instants")), (2, 2), "at its thread, and above all");

            let place = outcome.trace_folder();
            for arguments in [&["check"][..], &["top", "--once"], &["stats"]] {
                let ended = run::urscope(&[arguments, &[place.to_str().unwrap()]].concat());
                assert!(ended.code < 2, "{arguments:?}: {}", ended.stderr);
                assert!(!(ended.stdout + &ended.stderr).contains("merged"), "{arguments:?}");
            }
        }
    }
}

/// There is nothing to merge where nothing was traced, and nothing is said about it.
#[test]
fn a_run_without_traces_has_no_merged_trace() {
    let outcome = TestRun::of_program("/bin/true").run();
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(!outcome.merged_trace().exists() && !outcome.stderr.contains("merged"), "{}", outcome.stderr);
}

/// One query on the tables of two nodes. Each opening is joined with the get of its handle data.
const ASKED: &str = "
import duckdb, json, sys
def table(name):
    files = [folder + '/' + name + '.parquet' for folder in sys.argv[1:]]
    return f\"(select *, parse_dirpath(filename) as node from read_parquet({files}, filename = true))\"
def one(query):
    return duckdb.sql(query).fetchall()
print(json.dumps({
    'calls': one(f\"select function, count(*) from {table('calls')} group by 1\"),
    'rules': one(f\"select rule, sum(count)::bigint from {table('findings')} group by 1\"),
    'processes': one(f\"select pid, calls, ipc_calls from {table('processes')} order by node, process\"),
    'shared': one(f\"\"\"select producer.pid, consumer.pid, got.function, count(*)
        from {table('handles')} opening
        join {table('handles')} data on data.node = opening.node and data.life = opening.handle
        join {table('calls')} got on got.node = data.node and got.process = data.process and got.call = data.born_call
        join {table('processes')} producer on producer.node = data.node and producer.process = data.process
        join {table('processes')} consumer on consumer.node = opening.node and consumer.process = opening.process
        where opening.lane = 'opening' and got.made = data.life and opening.born_ns > data.born_ns group by all\"\"\"),
}))
";

#[test]
fn duckdb_reads_the_tables_of_several_nodes_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let runs = ["free_while_open", "clean"].map(|name| TestRun::new(name, Release::R2026_2, Adapter::V2).run());
    let mut calls = BTreeMap::new();
    let mut rules = BTreeMap::new();
    let mut processes = Vec::new();
    let mut asked = vec!["-c".to_owned(), ASKED.to_owned()];
    for (node, run) in runs.iter().enumerate() {
        let traces = run.trace_folder();
        let to = folder.path().join(format!("node{node}"));
        let arguments = ["export", traces.to_str().unwrap(), "--format", "parquet", "-o", to.to_str().unwrap()];
        let ended = run::urscope(&arguments);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        asked.push(to.to_str().unwrap().to_owned());
        let judged = run::urscope(&["check", "--format", "json", traces.to_str().unwrap()]);
        let judged: Value = serde_json::from_str(&judged.stdout).unwrap();
        for (function, count) in judged["calls"].as_object().unwrap() {
            *calls.entry(function.clone()).or_insert(0) += count.as_u64().unwrap();
        }
        for finding in judged["findings"].as_array().unwrap() {
            *rules.entry(finding["rule"].as_str().unwrap().to_owned()).or_insert(0) +=
                finding["count"].as_u64().unwrap();
        }
        let of = |seen: &Value| json!([seen["pid"], seen["calls"], seen["ipc_calls"]]);
        processes.extend(judged["processes"].as_array().unwrap().iter().map(of));
    }
    let answer = Command::new(python_with("duckdb-2.0.0")).args(&asked).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let pairs = |name: &str| -> BTreeMap<String, u64> {
        let rows = answer[name].as_array().unwrap().iter();
        rows.map(|row| (row[0].as_str().unwrap().to_owned(), row[1].as_u64().unwrap())).collect()
    };
    assert_eq!((pairs("calls"), pairs("rules")), (calls, rules));
    assert_eq!(answer["processes"], Value::Array(processes.clone()));
    let shared = answer["shared"].as_array().unwrap();
    assert_eq!(shared.len(), 2, "one producer and one consumer in each run: {shared:?}");
    for row in shared {
        assert_eq!(row[2], "urIPCGetMemHandleExp");
        assert!(processes.iter().any(|seen| seen[0] == row[0]) && row[0] != row[1], "{row}");
    }
}

#[test]
fn a_timeline_that_cannot_be_written_is_reported() {
    let outcome = TestRun::new("clean", Release::R2026_2, Adapter::V2).run();
    let traces = outcome.trace_folder();
    let ended = run::urscope(&["export", traces.to_str().unwrap(), "-o", "/nonexistent/run.json"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("/nonexistent/run.json"), "{}", ended.stderr);
}
