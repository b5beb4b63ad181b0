//! Tests of the questions about whole runs.

use std::{collections::BTreeMap, time::Duration};

use urscope_analyzer::analysis::{Analysis, Ended};
use urscope_analyzer::lifetimes::{EventSink, FinishedCall, LifetimeTracker, ProcessStart};
use urscope_analyzer::questions::{self, By, QuestionError, Stats};
use urscope_analyzer::{Options, report};

use crate::forms::form;
use crate::traces::{files, files_with, one_late, put};

/// Two consumers open what a producer shares. One closes it, the other is killed.
const SHARED: &str = "producer: alloc p 4096\nproducer: get p -> h\nfirst: open h -> m\nfirst: open h -> m\nsecond: open h -> n\n\
                      first: close m\nproducer: put h\nsecond: killed\nfirst: close m\nproducer: free p";

fn written(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), files);
    folder
}

fn folder(scenario: &str) -> tempfile::TempDir {
    written(&files(scenario))
}

fn holders(scenario: &str, at: Option<Duration>) -> Result<questions::Holders, QuestionError> {
    questions::holders(&[folder(scenario).path().to_owned()], &Options::default(), at)
}

fn stats(scenario: &str) -> Stats {
    questions::stats(&[folder(scenario).path().to_owned()], &Options::default()).unwrap()
}

#[test]
fn a_process_that_held_something_at_its_end_is_listed() {
    let answer = holders(SHARED, None).unwrap();
    let [held] = &answer.held[..] else { panic!("{answer:?}") };
    assert_eq!((held.size, held.handles, answer.pinned_bytes), (Some(4096), 0, 4096));
    let [holder] = &held.holders[..] else { panic!("{held:?}") };
    assert_eq!((holder.since.pid, holder.opens, holder.ended), (300, 1, Some(Ended::Killed)));
    assert_eq!(held.got.pid, 100);
}

#[test]
fn holders_can_be_requested_for_any_moment() {
    // The records of a scenario are half a microsecond apart.
    let scenario = SHARED.replace("second: killed", "second: close n");
    let mut most = (0, 0);
    let mut moments = 0;
    for halves in 0..40 {
        match holders(&scenario, Some(Duration::from_nanos(500 * halves))) {
            Ok(answer) => {
                moments += 1;
                for held in &answer.held {
                    assert!(held.holders.iter().all(|holder| holder.ended.is_none()));
                    let opens: u64 = held.holders.iter().map(|holder| holder.opens).sum();
                    // The third open begins at 4 us and returns half a microsecond later; then one is closed.
                    match halves {
                        8 | 10 => assert_eq!(opens, 2, "at {halves}"),
                        9 => assert_eq!(opens, 3, "at {halves}"),
                        _ => {}
                    }
                    most = most.max((held.handles, opens));
                }
            }
            Err(error @ QuestionError::TooLate { .. }) => {
                assert!(error.to_string().contains("ask for an earlier moment"), "{error}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(moments > 5, "{moments}");
    assert_eq!(most, (1, 3), "one handle, open three times");
}

#[test]
fn a_clean_run_has_no_holders_at_its_end() {
    let answer =
        holders("p: alloc a 64\np: get a -> h\nc: open h -> m\nc: close m\np: put h\np: free a", None).unwrap();
    assert_eq!((answer.held.len(), answer.pinned_bytes), (0, 0));
}

#[test]
fn imported_physical_memory_and_events_have_holders() {
    for (make, get, open) in [("physical", "get-physical", "open-physical"), ("event", "get-event", "open-event")] {
        let scenario = format!("p: {make} a ipc\np: {get} a -> h\nc: {open} h -> b\nc: killed");
        let answer = holders(&scenario, None).unwrap();
        let [held] = &answer.held[..] else { panic!("{make}: {answer:?}") };
        assert_eq!((held.handles, held.holders.len()), (1, 1), "{make}");
    }
}

#[test]
fn the_history_of_a_handle_covers_all_processes() {
    let folder = folder(SHARED);
    let paths = [folder.path().to_owned()];
    let held = holders(SHARED, None).unwrap().held.remove(0);
    let of_mapping = held.holders[0].opened.rsplit(' ').next().unwrap().to_owned();
    // The handle is found by its fingerprint, its address in the producer, and its address in a consumer.
    for name in [held.fingerprint.clone(), held.value.clone().unwrap(), of_mapping] {
        let history = questions::handle(&paths, &Options::default(), questions::word(&name).unwrap()).unwrap();
        let calls: Vec<_> = history
            .moments
            .iter()
            .map(|moment| (moment.place.pid, moment.place.function.as_deref().unwrap()))
            .collect();
        let expected = [
            (100, "urUSMDeviceAlloc"),
            (100, "urIPCGetMemHandleExp"),
            (200, "urIPCOpenMemHandleExp"),
            (200, "urIPCOpenMemHandleExp"),
            (300, "urIPCOpenMemHandleExp"),
            (200, "urIPCCloseMemHandleExp"),
            (100, "urIPCPutMemHandleExp"),
            (200, "urIPCCloseMemHandleExp"),
            (100, "urUSMFree"),
        ];
        assert_eq!(calls, expected, "by {name}");
        assert!(history.moments.iter().all(|moment| moment.result.is_some()));
        assert_eq!(history.fingerprints, std::slice::from_ref(&held.fingerprint));
        let rules: Vec<_> = history.findings.iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(rules, ["leaked-mapping", "freed-while-open"], "the killed process may have held it");
    }
}

#[test]
fn an_unknown_handle_is_an_error() {
    let folder = folder(SHARED);
    let error = questions::handle(&[folder.path().to_owned()], &Options::default(), 0xdead_beef).unwrap_err();
    assert!(error.to_string().contains("0xdeadbeef"), "{error}");
}

#[test]
fn calls_errors_and_times_are_counted() {
    let answer = stats("p: alloc a 64\np: get a -> h\np: get a fails\np: put h\np: free a begins\np: killed");
    let of = |function: &str| answer.calls.iter().find(|calls| calls.function == function).unwrap();
    let gets = of("urIPCGetMemHandleExp");
    assert_eq!((gets.calls, gets.unreturned, gets.errors.values().sum::<u64>()), (2, 0, 1));
    assert!(gets.latency.min_ns > 0 && gets.latency.min_ns <= gets.latency.p50_ns);
    assert!(gets.latency.p99_ns <= gets.latency.max_ns && gets.latency.total_ns >= gets.latency.max_ns);
    assert_eq!((of("urUSMFree").calls, of("urUSMFree").unreturned), (1, 1));
}

#[test]
fn shared_memory_is_sampled_over_time_and_its_peak_kept() {
    let answer = stats(SHARED);
    assert_eq!(answer.peak.pinned_bytes, 4096);
    let opened = answer.shared.iter().filter_map(|sample| sample.opened.get("mapping"));
    assert_eq!(opened.max(), Some(&3));
    assert_eq!(answer.shared.last().unwrap().opened.get("mapping"), None, "all are closed, or their process is gone");
    let scenario: Vec<_> = (0..3000).map(|i| format!("p: alloc a{i} 64\np: get a{i} -> h{i}")).collect();
    let answer = stats(&scenario.join("\n"));
    assert!(answer.shared.len() <= questions::SAMPLES && answer.shared.len() > 32, "{}", answer.shared.len());
    assert!(answer.shared.is_sorted_by_key(|sample| sample.time_ns));
    let peak = answer.peak.pinned_bytes;
    assert!((3000 * 64 * 8 / 9..=3000 * 64).contains(&peak), "{peak}");
}

/// The record of a delayed thread comes after later records in the trace.
#[test]
fn times_do_not_decrease_after_a_late_record() {
    let scenario: Vec<_> = (0..100).map(|i| format!("p: alloc a{i} 64\np: get a{i} -> h{i}")).collect();
    let folder = written(&one_late(&scenario.join("\n")));
    let answer = questions::stats(&[folder.path().to_owned()], &Options::default()).unwrap();
    assert!(answer.shared.is_sorted_by_key(|sample| sample.time_ns));
    assert_eq!(answer.peak.pinned_bytes, 6400, "the late record is counted");

    let gets: Vec<_> = (0..100).map(|i| format!("p: get a -> h{i}")).collect();
    let folder = written(&one_late(&format!("p: alloc a 64\n{}\np: killed", gets.join("\n"))));
    let paths = [folder.path().to_owned()];
    let held = questions::holders(&paths, &Options::default(), None).unwrap().held.remove(0);
    let name = questions::word(&held.fingerprint).unwrap();
    let moments = questions::handle(&paths, &Options::default(), name).unwrap().moments;
    assert!(moments.len() == 101 && moments.is_sorted_by_key(|moment| moment.place.time_ns), "{}", moments.len());
}

#[test]
fn shares_are_counted_by_producer_and_consumer() {
    let answer = stats(&format!("{SHARED}\nsecond2: exit\nproducer2: get q -> i\nfirst2: open i -> k"));
    let shares: Vec<_> = answer
        .shares
        .iter()
        .map(|share| (share.producer.pid, share.consumer.pid, share.handles, share.opens, share.open, share.bytes))
        .collect();
    assert_eq!(shares, [(100, 200, 1, 2, 0, 4096), (100, 300, 1, 1, 1, 4096), (500, 600, 1, 1, 1, 0)]);
    assert!(answer.shares.iter().all(|share| share.kind == "mapping"));
}

/// Findings, calls and answers have times since the run began, on two hosts with unrelated clocks.
#[test]
fn the_clocks_of_several_hosts_are_aligned() {
    let folder = written(&two_hosts());
    let paths = [folder.path().to_owned()];
    let judgement = urscope_analyzer::judge(&paths, &Options::default()).unwrap();
    let processes: Vec<_> = judgement.processes.iter().map(|process| (process.host.as_str(), process.rank)).collect();
    assert_eq!(processes, [("node2", Some(1)), ("node1", Some(0))], "the second began first, by real time");
    let mut calls = LifetimeTracker::new(Slices::default());
    Analysis::run(&paths, &Options::default(), &mut calls).unwrap();
    let Slices { hosts, calls } = calls.into_sink();
    assert_eq!(hosts, ["node2", "node1"], "numbered as in the judgement");
    for finding in &judgement.findings {
        let process = hosts.iter().position(|host| *host == finding.process.host).unwrap() as u32;
        let call = calls.iter().find(|call| (call.0, Some(call.1)) == (process, finding.call)).unwrap();
        assert!((call.2..=call.3).contains(&finding.time_ns), "{} at {} in {call:?}", finding.rule, finding.time_ns);
    }
    let double = judgement.findings.iter().find(|finding| finding.process.host == "node1").unwrap();
    assert!((SECOND..2 * SECOND).contains(&double.time_ns), "{}", double.time_ns);

    let held = questions::holders(&paths, &Options::default(), None).unwrap().held;
    let got: Vec<_> = held.iter().map(|held| (held.got.host.as_str(), held.got.time_ns / SECOND)).collect();
    assert_eq!(got, [("node2", 0), ("node1", 1)]);
    // Half a second after the run began, the host that began last has no events yet.
    let early = questions::holders(&paths, &Options::default(), Some(Duration::from_millis(500))).unwrap();
    assert_eq!(early.held.len(), 0, "the other host has ended");
    let stats = questions::stats(&paths, &Options::default()).unwrap();
    assert!(stats.shared.is_sorted_by_key(|sample| sample.time_ns));
    assert!(stats.shared.last().unwrap().time_ns >= SECOND);
}

const SECOND: u64 = 1_000_000_000;

/// A scenario on two hosts. The second began later by its monotonic clock, but a second earlier by real time.
fn two_hosts() -> BTreeMap<String, Vec<u8>> {
    let scenario = "p: get a -> h\np: put h\np: put h\np: get a -> h\np: killed\n\
                 q@2: get b -> i\nq@2: put i\nq@2: put i\nq@2: get b -> i\nq@2: killed";
    files_with(scenario, |header, _| {
        let second = header.boot_id == "boot 2";
        header.host = if second { "node2" } else { "node1" }.into();
        header.rank = Some(u32::from(second));
        header.clock.realtime_ns = 1_700_000_000 * SECOND + if second { 0 } else { SECOND };
    })
}

/// The hosts of the processes, and the calls: process, number, from, to.
#[derive(Default)]
struct Slices {
    hosts: Vec<String>,
    calls: Vec<(u32, u64, u64, u64)>,
}

impl EventSink for Slices {
    fn process(&mut self, began: &ProcessStart<'_>) {
        assert_eq!(began.process as usize, self.hosts.len());
        self.hosts.push(began.header.host.clone());
    }

    fn call(&mut self, call: &FinishedCall<'_>) {
        self.calls.push((call.process, call.number, call.from, call.to.unwrap()));
    }
}

/// Runs are given as traces or as reports.
#[test]
fn two_runs_are_compared() {
    let leak = "p: alloc a 64\np: get a -> h";
    let double = "p: alloc a 64\np: get a -> h\np: put h\np: put h\np: get a -> h";
    let before = folder(leak);
    let after = folder(double);
    let answer = questions::diff(before.path(), after.path(), &Options::default()).unwrap();
    let codes = |diff: &questions::Diff| {
        let introduced: Vec<_> = diff.introduced.iter().map(|finding| finding.rule.clone()).collect();
        let cured: Vec<_> = diff.cured.iter().map(|finding| finding.rule.clone()).collect();
        (introduced, cured, diff.common)
    };
    assert_eq!(codes(&answer), (vec!["double-put".to_owned()], vec![], 1));
    assert_eq!(answer.calls["urIPCPutMemHandleExp"], [0, 2]);
    assert_eq!(answer.calls.get("urUSMDeviceAlloc"), None, "as often as before");
    let report = before.path().join("report");
    let judgement = urscope_analyzer::judge(&[after.path().to_owned()], &Options::default()).unwrap();
    std::fs::write(&report, serde_json::to_vec(&judgement).unwrap()).unwrap();
    let back = questions::diff(&report, &before.path().join("urscope-p-100-1.json"), &Options::default()).unwrap();
    assert_eq!(codes(&back), (vec![], vec!["double-put".to_owned()], 1));
    let same = questions::diff(&report, after.path(), &Options::default()).unwrap();
    assert_eq!((codes(&same), same.calls.len()), ((vec![], vec![], 2), 0));
    std::fs::write(&report, "{}").unwrap();
    let error = questions::diff(&report, after.path(), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("is not a urscope report"), "{error}");
}

fn holders_text(scenario: &str) -> String {
    form(|out| report::holders(&holders(scenario, None).unwrap(), out, false))
}

/// What is reported as leaked is never "nothing".
#[test]
fn what_was_left_of_untraced_processes_is_listed_as_well() {
    let answer = holders("c: open h -> m\nc: exit", None).unwrap();
    assert_eq!((answer.held.len(), answer.lost_count, answer.lost.len()), (0, 1, 1), "{answer:#?}");
    assert!(answer.lost[0].object.starts_with("mapping 0x") && answer.lost[0].released.is_none());
    let text = holders_text("c: open h -> m\nc: exit");
    assert!(text.starts_with("urscope: 1 object left by processes that have ended, of which no"), "{text}");
    assert!(holders_text("c: open h -> m\nc: close m\nc: exit").starts_with("urscope: nothing is held"));
}

#[test]
fn what_is_held_is_added_up_by_rank_and_limited() {
    let scenario =
        "a: alloc p 64\na: get p -> h\nb: open h -> m\nc: open h -> n\nc: open h -> n\na: alloc q 32\na: get q -> i";
    let folder = written(&files_with(scenario, |header, _| header.rank = Some(12 - header.pid / 100)));
    let paths = [folder.path().to_owned()];
    let answer = questions::holders(&paths, &Options::default(), None).unwrap();
    let by = answer.by(By::Rank, 2);
    let parts: Vec<_> =
        by.parts.iter().map(|part| (part.name.as_str(), part.handles, part.opens, part.bytes)).collect();
    assert_eq!(parts, [("rank 9", 0, 2, 64), ("rank 10", 0, 1, 64)]);
    assert_eq!((by.objects, by.pinned_bytes, by.more), (2, 96, 1));
    let text = form(|out| report::holders_by(&by, out, false));
    assert!(text.starts_with("urscope: 2 objects held at the end of each process, 96 bytes pinned\n"), "{text}");
    assert!(text.ends_with("\nand 1 more; a higher --limit shows them\n"), "{text}");
    let limited = answer.limited(1);
    assert_eq!((limited.held.len(), limited.more, limited.pinned_bytes), (1, 1, 96));
}

#[test]
fn totals_are_those_of_all_processes_also_if_few_are_shown() {
    let text = |stats: &Stats| form(|out| report::stats(stats, out, false));
    let all = stats(SHARED);
    let opens = |calls: &[questions::Calls]| {
        calls.iter().filter(|calls| calls.function == "urIPCOpenMemHandleExp").map(|calls| calls.calls).sum::<u64>()
    };
    assert_eq!((opens(&all.totals), opens(&all.calls)), (3, 3));
    let few = all.limited(1);
    assert_eq!((opens(&few.totals), opens(&few.calls)), (3, 0), "the producer opens nothing");
    assert!(text(&few).contains("\nall processes\n") && !text(&few).contains("\nfirst (pid 200)\n"), "{}", text(&few));
    assert!(!text(&stats("p: alloc a 64\np: free a")).contains("all processes"));
}

#[test]
fn what_is_held_says_that_its_context_was_released() {
    let scenario = "c: context x\np: alloc a 64\np: get a -> h\nc: open h -> m in x\np: put h\nc: release x\nc: exit";
    let answer = holders(scenario, None).unwrap();
    let released = answer.held[0].holders[0].released.as_ref().unwrap();
    assert_eq!((released.function.as_deref(), answer.lost_count), (Some("urContextRelease"), 0), "{answer:#?}");
    assert!(holders_text(scenario).contains("urContextRelease, which released its context"));
    let alone = holders("c: context x\nc: open h -> m in x\nc: release x\nc: exit", None).unwrap();
    assert!(alone.lost[0].released.is_some(), "{alone:#?}");
}

#[test]
fn answers_are_written_as_text() {
    let folder = folder(SHARED);
    let paths = [folder.path().to_owned()];
    let mut text = Vec::new();
    report::holders(&holders(SHARED, None).unwrap(), &mut text, false).unwrap();
    report::holders(&holders("p: alloc a 64", None).unwrap(), &mut text, false).unwrap();
    let held = holders(SHARED, None).unwrap().held.remove(0);
    let name = questions::word(&held.fingerprint).unwrap();
    report::handle(&questions::handle(&paths, &Options::default(), name).unwrap(), &mut text, false).unwrap();
    report::stats(&stats(SHARED), &mut text, false).unwrap();
    let before = self::folder("p: alloc a 64\np: get a -> h");
    let after = self::folder("p: get a -> h\np: put h\np: put h");
    let diff = questions::diff(before.path(), after.path(), &Options::default()).unwrap();
    report::diff(&diff, &mut text, false).unwrap();
    let text = String::from_utf8(text).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/analysis/answers.txt"), &text).unwrap();
    }
    assert_eq!(text, include_str!("answers.txt"));
}
