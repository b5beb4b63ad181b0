//! Tests of the analysis on trace files: complete, truncated, damaged, hostile or missing ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod corpus;
mod exemptions;
mod following;
mod forms;
mod hostile;
mod hostile_names;
// The checks of the fuzzer use each other by this name.
#[path = "../../../fuzz/checks/judgement.rs"]
mod judgement;
mod questions;
mod reports;
mod traces;

use std::collections::BTreeMap;

use traces::{codes, files, files_with, judged};
use urscope_analyzer::analysis::{Ended, LimitCause};
use urscope_analyzer::{Options, Verdict, judge};
use urscope_rule_pages::{Page, scenario::Scenario};
use urscope_rules::{Finding, Severity, catalog::RULES};
use urscope_schema::trace::process_times::{FILE, ProcessTimes};

const CLEAN_RUN: &str = "producer: alloc p 4096\nproducer: get p -> h\nconsumer: open h -> m\nconsumer: close m\n\
                         producer: put h\nproducer: free p";

#[test]
fn a_run_without_violations_is_clean() {
    let judgement = judged(&files(CLEAN_RUN));
    assert_eq!((judgement.verdict, judgement.exit, judgement.findings.len()), (Verdict::Clean, 0, 0));
    assert_eq!(judgement.calls["urIPCOpenMemHandleExp"], 1);
    let ended: Vec<_> = judgement.processes.iter().map(|process| (process.pid, process.calls, process.ended)).collect();
    assert_eq!(ended, [(100, 4, Ended::Exited), (200, 2, Ended::Exited)]);
}

#[test]
fn the_findings_of_traces_equal_those_of_scenarios() {
    for rule in RULES {
        for heading in ["Bad trace", "Good trace"] {
            let page = Page::for_rule(rule);
            // The processes of these traces do not exist, so none of them can be running: it exits.
            let scenario = &page.scenario(heading).unwrap().replace(": running", ": exit");
            let judgement = judged(&files(scenario));
            let mut expected = scenario.parse::<Scenario>().unwrap().play().unwrap();
            let unjudged = expected.iter().any(|finding| ["no-calls-seen", "calls-lost"].contains(&finding.rule.code));
            expected.retain(|finding| finding.rule.code != "no-calls-seen");
            // What happens again at one place is one finding with a count.
            let of_rule = |counted: Vec<(&str, u64)>| {
                let mut totals = BTreeMap::<String, u64>::new();
                for (code, count) in counted {
                    *totals.entry(code.to_owned()).or_default() += count;
                }
                totals
            };
            let found = of_rule(judgement.findings.iter().map(|f| (f.rule.as_str(), f.count)).collect());
            let counted = of_rule(expected.iter().map(|finding| (finding.rule.code, 1)).collect());
            assert_eq!(found, counted, "{} {heading}", rule.code);
            for finding in &judgement.findings {
                let same = |one: &&Finding| (&one.message, one.severity) == (&finding.message, finding.severity);
                assert!(expected.iter().find(same).is_some(), "{} {heading}: {}", rule.code, finding.message);
            }
            assert_eq!(judgement.verdict == Verdict::NotJudged, unjudged, "{} {heading}", rule.code);
            let limited = rule.code == "untraced-peer" && heading == "Bad trace" || scenario.contains(": killed");
            assert_eq!(judgement.limits.is_empty(), !limited, "{} {heading}", rule.code);
            let partly = limited && !unjudged && !judgement.findings.iter().any(|finding| finding.fails);
            assert_eq!(judgement.verdict == Verdict::PartlyJudged, partly, "{} {heading}", rule.code);
            assert!(!partly || (judgement.exit == 2 && judgement.reason.is_some()));
        }
    }
}

#[test]
fn the_same_violation_at_the_same_place_is_counted() {
    let scenario = "p: get a -> h\np: get a -> i\np: get a -> j\np: put j\np: put j\np/2: put j";
    let judgement = judged(&files(scenario));
    assert_eq!(codes(&judgement), [("double-put", 2), ("leaked-handle", 2)]);
    assert_eq!(judgement.findings[0].call, Some(5));
}

#[test]
fn the_severity_that_fails_a_run_is_an_option() {
    let folder = tempfile::tempdir().unwrap();
    traces::put(folder.path(), &files("p: alloc a 64\np: get a -> h\np: free a"));
    for (fail_on, verdict) in [(Severity::Note, Verdict::Findings), (Severity::Warning, Verdict::Clean)] {
        let judgement = judge(&[folder.path().to_owned()], &Options { fail_on, ..Options::default() }).unwrap();
        assert_eq!(judgement.verdict, verdict);
        assert_eq!(codes(&judgement), [("freed-while-exported", 1)]);
    }
}

#[test]
fn a_killed_process_is_distinguished_from_one_that_exited() {
    let scenario = "p: get a -> h\nc: open h -> m\nc/2: open h -> m begins\nc: killed\np: put h";
    let judgement = judged(&files(scenario));
    assert_eq!((judgement.verdict, judgement.exit), (Verdict::PartlyJudged, 2));
    assert_eq!(judgement.reason.as_deref(), Some("c (pid 200) was killed inside call 2 (urIPCOpenMemHandleExp)"));
    assert_eq!(codes(&judgement), [("leaked-mapping", 1)]);
    let killed = &judgement.processes[1];
    assert_eq!((killed.ended, killed.inside.as_deref()), (Ended::Killed, Some("urIPCOpenMemHandleExp")));
    assert!(!killed.torn);
}

/// Nothing that the process did with the device afterwards can have succeeded.
#[test]
fn a_device_that_has_failed_is_never_plain_clean() {
    let scenario =
        "p: alloc a 64\np: get a -> h\nc: open h -> m\nc: copy m sized 8\nc: copy x sized 8\nc: copy m sized 8 fails 20
        c: copy m sized 8 fails 20\nc: close m\np: put h\np: free a";
    let failed = judged(&files(scenario));
    assert_eq!((failed.verdict, failed.exit), (Verdict::PartlyJudged, 2));
    let [limit] = &failed.limits[..] else { panic!("{:?}", failed.limits) };
    assert_eq!(limit.cause, LimitCause::DeviceError);
    assert_eq!(
        limit.text,
        "a device of c (pid 200) failed: call 4 (urEnqueueUSMMemcpy) was the first to return UR_RESULT_ERROR_DEVICE_LOST (20); the last \
         command on shared memory before it was call 2 (urEnqueueUSMMemcpy)"
    );
    let text = forms::form(|out| urscope_analyzer::report::text(&failed, out, false));
    assert!(
        text.starts_with("urscope: clean, but a device of c (pid 200) failed: call 4 (urEnqueueUSMMemcpy)"),
        "{text}"
    );
    let other_error = judged(&files(&scenario.replace("fails 20", "fails 45")));
    assert!(other_error.limits.is_empty(), "{:?}", other_error.limits);
}

#[test]
fn what_was_not_looked_into_is_counted() {
    let scenario = "p: alloc a 64\np: get a -> h\nc: open h -> m\n2 times\nc: graph g\nend\np: graph g\nc: close m\np: put h\np: free a";
    let counted = judged(&files(scenario));
    assert_eq!(counted.verdict, Verdict::PartlyJudged);
    let [limit] = &counted.limits[..] else { panic!("{:?}", counted.limits) };
    assert_eq!(limit.cause, LimitCause::Unexamined);
    assert_eq!(
        limit.text,
        "3 calls of cuGraphLaunch were not looked into: which memory their commands used is not known"
    );
}

#[test]
fn commands_that_something_unknown_may_have_ordered_are_counted() {
    let begin = "p: alloc a 64 cuda\np: get a -> h cuda\np: alloc f 64 as shared cuda\nc: open h -> m cuda\np: copy a sized 64 cuda";
    let end = "c: copy m sized 64 cuda\np: host-waits\nc: host-waits\nc: close m cuda\np: free a cuda\np: free f cuda";
    let judgement = judged(&files(&format!("{begin}\np: copy f sized 8 cuda\n{end}")));
    assert_eq!((judgement.verdict, judgement.findings.len()), (Verdict::Clean, 0), "{:?}", judgement.findings);
    assert_eq!(
        judgement.unseen,
        [
            "1 pair of commands of two processes on the same bytes not judged as a race: a kernel, a graph or a flag may have \
             ordered them"
        ]
    );
    let race = judged(&files(&format!("{begin}\n{end}")));
    assert_eq!((codes(&race), race.unseen.len()), (vec![("race", 1)], 0));
}

#[test]
fn kernels_that_nothing_orders_are_counted() {
    let unseen = |steps: &str| {
        let begin = "p: alloc a 64 cuda\np: get a -> h cuda\nc: open h -> m cuda";
        let judgement = judged(&files(&format!("{begin}\n{steps}\nc: host-waits\nc: close m cuda\np: free a cuda")));
        assert_eq!((judgement.verdict, judgement.findings.len()), (Verdict::Clean, 0), "{:?}", judgement.findings);
        judgement.unseen
    };
    let too_early = "p: launch a + 32 cuda\nc: copy m + 32 sized 32 cuda\np: host-waits";
    assert_eq!(
        unseen(too_early),
        [
            "1 pair of a kernel and a command of another process at its pointer not judged as a race: nothing orders them, and what the \
             kernel accesses is not known; the first: call 3 (cuLaunchKernel) of p (pid 100), and call 2 (cuMemcpyDtoD_v2) of c (pid 200)"
        ]
    );
    assert_eq!(
        unseen(&too_early.replace("a + 32", "a + 16")),
        [
            "1 pair of a kernel and a command of another process further behind in the same memory not judged as a race: nothing orders \
             them, and how much the kernel accesses is not known; the first: call 3 (cuLaunchKernel) of p (pid 100), and call 2 \
             (cuMemcpyDtoD_v2) of c (pid 200)"
        ]
    );
    let is_counted = |steps: &str, pairs: &str| {
        let unseen = unseen(steps);
        unseen.len() == 1 && unseen[0].starts_with(pairs)
    };
    assert!(is_counted("p: copy a sized 64 cuda\nc: launch m cuda\np: host-waits", "1 pair of a kernel"));
    assert!(is_counted("p: launch a cuda\nc: launch m cuda\nc: launch m cuda\np: host-waits", "2 pairs of a kernel"));
    let several = "3 times\np: launch a cuda\nend\nc: copy m sized 8 cuda\np: host-waits";
    assert!(is_counted(several, "1 pair of a kernel"), "those in front of it are over before it");
    assert_eq!(unseen("p: launch a cuda\np: host-waits\nc: launch m cuda"), [""; 0]);
    assert_eq!(unseen("p: launch a + 32 cuda\nc: copy m sized 32 cuda\np: host-waits"), [""; 0]);
    assert_eq!(unseen("p: launch a cuda fails\nc: copy m sized 32 cuda\np: host-waits"), [""; 0]);
}

/// Files, with what `urscope run` saw of how the second process ended.
fn with_signal(mut files: BTreeMap<String, Vec<u8>>, signal: u32) -> BTreeMap<String, Vec<u8>> {
    let name = files.keys().find(|name| name.contains("-200-")).unwrap();
    let (pid, start) = urscope_schema::trace::writer_of(name).unwrap();
    let boot_id = "boot 1".into();
    let signal = Some(signal);
    let times = ProcessTimes { boot_id, pid, start, gone_ns: u64::MAX, signal, ..ProcessTimes::default() };
    files.insert(FILE.into(), serde_json::to_vec(&times).unwrap());
    files
}

#[test]
fn of_a_large_file_of_times_the_end_is_read_and_that_is_said() {
    let mut files = with_signal(files("p: get a -> h\nc: open h -> m\nc: close m\nc: killed\np: put h"), 9);
    let times = files.get_mut(FILE).unwrap();
    *times = [vec![b'x'; 16 << 20], vec![b'\n'], std::mem::take(times)].concat();
    let options = Options { expected_signals: vec!["SIGKILL".into()], ..Options::default() };
    let judgement = traces::judged_with(&files, &options);
    assert_eq!(judgement.processes[1].signal.as_deref(), Some("SIGKILL"));
    let [limit] = &*judgement.limits else { panic!("{judgement:#?}") };
    assert_eq!(limit.cause, LimitCause::NotTraced);
    assert!(limit.text.ends_with("process-times.jsonl is too large, and only its end was read"), "{limit:?}");
}

#[test]
fn a_death_by_a_signal_is_never_plain_clean_unless_it_is_expected() {
    let scenario = "p: get a -> h\nc: open h -> m\nc: close m\nc: killed\np: put h";
    let judge = |signal, expected: &[&str]| {
        let expected_signals = expected.iter().map(|name| (*name).to_owned()).collect();
        traces::judged_with(&with_signal(files(scenario), signal), &Options { expected_signals, ..Options::default() })
    };
    let died = judge(11, &["SIGKILL"]);
    let process = &died.processes[1];
    assert_eq!((process.ended, process.signal.as_deref(), died.exit), (Ended::Killed, Some("SIGSEGV"), 2));
    assert_eq!(died.limits[0].cause, LimitCause::Death);
    let text = forms::form(|out| urscope_analyzer::report::text(&died, out, false));
    assert!(text.starts_with("urscope: clean, but c (pid 200) died of SIGSEGV (2 processes, 4 calls)\n\n"), "{text}");
    assert!(text.contains("2 calls, 2 of them IPC; died of SIGSEGV\n"), "{text}");
    assert_eq!((judge(9, &["SIGKILL"]).verdict, judge(9, &[]).verdict), (Verdict::Clean, Verdict::PartlyJudged));

    let by_itself = judge(0, &[]);
    assert_eq!(
        (by_itself.verdict, by_itself.processes[1].ended),
        (Verdict::Clean, Ended::Exited),
        "by a bare exit_group"
    );
    let unknown =
        |expected_signals| traces::judged_with(&files(scenario), &Options { expected_signals, ..Options::default() });
    assert_eq!(unknown(vec![]).reason.as_deref(), Some("c (pid 200) was killed"));
    assert_eq!(unknown(vec!["SIGTERM".into()]).verdict, Verdict::Clean);

    let in_exit_handlers = judged(&with_signal(files(&scenario.replace("c: killed\n", "c: exit\n")), 11));
    assert_eq!(in_exit_handlers.reason.as_deref(), Some("c (pid 200) died of SIGSEGV"));

    let faulty = judged(&with_signal(files(&format!("{scenario}\np: put h")), 11));
    assert_eq!((faulty.verdict, faulty.exit), (Verdict::Findings, 1));
    assert_eq!(faulty.reason.as_deref(), Some("c (pid 200) died of SIGSEGV"), "beside findings, too");
}

#[test]
fn every_form_says_what_was_not_seen_beside_findings() {
    let judgement =
        judged(&with_signal(files("p: get a -> h\nc: open h -> m\nc: close m\nc: killed\np: put h\np: put h"), 11));
    assert_eq!(judgement.verdict, Verdict::Findings);
    for form in forms::every_form(&judgement) {
        assert!(form.contains("c (pid 200) died of SIGSEGV"), "{form}");
    }
}

#[test]
fn calls_are_numbered_in_the_order_of_their_process() {
    // The recorder gives each thread a block of numbers.
    let in_blocks: BTreeMap<String, Vec<u8>> = (files("p: get a -> h\np/2: put h\np/2: put h\np: get b -> i")
        .into_iter())
    .map(|(name, bytes)| {
        let text = String::from_utf8(bytes).unwrap();
        let text = text.replace("\"call\":2,", "\"call\":65,").replace("\"call\":3,", "\"call\":66,");
        (name, text.replace("\"call\":4,", "\"call\":2,").into_bytes())
    })
    .collect();
    let judgement = judged(&in_blocks);
    assert_eq!(codes(&judgement), [("double-put", 1), ("leaked-handle", 1)]);
    let calls: Vec<_> = judgement.findings.iter().map(|finding| finding.call).collect();
    assert_eq!((calls, judgement.findings[0].other.as_ref().unwrap().call), (vec![Some(3), Some(4)], Some(2)));
    assert!(judgement.findings[0].message.contains("in call 3 ("), "{}", judgement.findings[0].message);
}

#[test]
fn a_consumer_in_another_run_of_the_directory_may_have_what_nobody_opened() {
    let beside = |scenario: &str| {
        let options = Options { beside: vec!["another".into()], ..Options::default() };
        traces::judged_with(&files(scenario), &options)
    };
    let server = beside("server: alloc p 4096\nserver: get p -> h\nserver: put h\nserver: free p");
    assert_eq!((server.verdict, server.limits[0].cause), (Verdict::PartlyJudged, LimitCause::OtherRun));
    assert!(
        server
            .reason
            .unwrap()
            .starts_with("no process of this run opened 1 exported object of its own, and another run wrote")
    );
    assert_eq!(beside(CLEAN_RUN).verdict, Verdict::Clean, "all were opened here");
}

#[test]
fn an_adapter_that_was_not_seen_is_a_limit_where_other_calls_were_seen() {
    let blind = |library: &str, watched: bool| {
        let library = library.to_owned();
        judged(&files_with(CLEAN_RUN, move |_, entry_point| {
            (entry_point.library, entry_point.problem) = (library.clone(), "it uses Unified Runtime 0.13".into());
            entry_point.slots = if watched { 13 } else { 0 };
        }))
    };
    let judgement = blind("libother.so", false);
    assert_eq!(judgement.verdict, Verdict::PartlyJudged);
    let said = "in producer (pid 100) the entry point adapter-table of libother.so could not be intercepted: it uses Unified Runtime 0.13";
    assert!(judgement.limits.iter().all(|limit| limit.cause == LimitCause::UnseenCalls), "{:?}", judgement.limits);
    assert!(judgement.reason.unwrap().starts_with(said) && judgement.unseen.is_empty());
    assert_eq!(blind("libother.so", true).verdict, Verdict::Clean, "a part of it was intercepted");
    let without_ipc = judged(&files_with(CLEAN_RUN, |_, entry_point| {
        entry_point.problem = "its table of IPC functions is longer".into();
        entry_point.functions.retain(|name| name == "urUSMFree");
    }));
    assert_eq!(without_ipc.verdict, Verdict::PartlyJudged, "none of its IPC functions was intercepted");
}

#[test]
fn a_running_process_has_no_leaks() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let judgement = judged(&files_with("p: get a -> h\np: running", |header, _| {
        (header.pid, header.start, header.boot_id) = (std::process::id(), ticks, boot.clone());
    }));
    assert_eq!((judgement.processes[0].ended, codes(&judgement)), (Ended::Running, vec![]));
}

#[test]
fn an_exec_ends_the_earlier_program() {
    let scenario = "p: get a -> h\np: killed\nq: get a -> i\nq: put i";
    let judgement = judged(&files_with(scenario, |header, _| (header.pid, header.start) = (7, 7)));
    assert_eq!(judgement.processes[0].ended, Ended::Exec);
    assert_eq!(judgement.processes[1].ended, Ended::Exited);
    assert_eq!(codes(&judgement), [("leaked-handle", 1)]);
    assert_eq!(judgement.findings[0].severity, Severity::Warning);
}

#[test]
fn a_forked_child_may_put_what_its_parent_got() {
    let scenario = "p: get a -> h\np: fork q\nq: put h\np: put h";
    let same_program =
        |header: &mut urscope_schema::trace::records::Header, _: &mut _| header.executable = "/app/p".into();
    assert_eq!(judged(&files_with(scenario, same_program)).verdict, Verdict::Clean);
    let mut orphan = files_with(scenario, same_program);
    orphan.retain(|name, _| name.contains("-q-"));
    assert_eq!(judged(&orphan).verdict, Verdict::Clean, "the parent was not traced");
}

#[test]
fn a_child_of_a_process_without_calls_inherits_nothing() {
    let parent_is_later = |header: &mut urscope_schema::trace::records::Header, _: &mut _| {
        header.clock.boottime_ns = header.clock.monotonic_ns;
        if header.executable.ends_with("/child") {
            (header.forked, header.forked_ns, header.parent) = (true, Some(header.clock.monotonic_ns), 200);
        }
        header.executable = "/app/program".into();
    };
    let mut files = files_with("child: put h\nparent: alloc a 64\nparent: free a", parent_is_later);
    assert_eq!(codes(&judged(&files)), [("put-of-unknown", 1)], "its parent had made no call when it forked");
    files.retain(|name, _| name.contains("-child-"));
    assert_eq!(judged(&files).verdict, Verdict::Clean, "the parent was not traced");
}

#[test]
fn lost_calls_make_every_finding_a_note() {
    let scenario = "p: put h\np: incomplete\nc: put g";
    let judgement = judged(&files(scenario));
    assert_eq!(codes(&judgement), [("put-of-unknown", 1), ("put-of-unknown", 1), ("calls-lost", 1)]);
    assert_eq!(judgement.findings[0].process.pid, 200);
    assert_eq!(judgement.findings[1].severity, Severity::Note);
    assert!(judgement.findings[1].message.contains("not proved"), "{}", judgement.findings[1].message);
    assert_eq!(judgement.unseen, ["the trace of p (pid 100) is incomplete: 1 record lost"]);
    assert_eq!(judgement.verdict, Verdict::Findings, "the finding in the other process is proved");
}

#[test]
fn handles_of_different_hosts_are_unrelated() {
    let scenario = "p: alloc a 64\np: get a -> h\nc@2: open h -> m\np: put h\np: free a\nc@2: close m";
    assert_eq!(codes(&judged(&files(scenario))), [("untraced-peer", 1)]);
    let one_host = files_with(scenario, |header, _| header.boot_id = "one".into());
    assert_eq!(codes(&judged(&one_host)), [("freed-while-open", 1)]);
}

#[test]
fn a_run_with_nothing_to_judge_is_not_clean_and_has_a_reason() {
    let empty = judged(&files(""));
    assert_eq!((empty.verdict, empty.exit), (Verdict::NotJudged, 2));
    assert!(empty.reason.unwrap().contains("no trace files in"));

    let idle = judged(&files("p: alloc a 64\np: free a"));
    assert_eq!(idle.verdict, Verdict::NotJudged);
    assert!(idle.reason.unwrap().contains("2 calls recorded in 1 process, but none that shares anything"));

    let not_intercepted = |_: &mut _, entry_point: &mut urscope_schema::trace::records::EntryPoint| {
        (entry_point.slots, entry_point.problem) = (0, "its table is unknown".into());
    };
    let not_intercepted = judged(&files_with("p: exit", not_intercepted));
    assert_eq!(
        not_intercepted.reason.unwrap(),
        "no call that shares anything was recorded: in p (pid 100) the entry point adapter-table of libur_adapter_level_zero_v2.so.0 \
         could not be intercepted: its table is unknown"
    );
}

#[test]
fn several_runs_are_said_and_kept_apart() {
    let judgement = judged(&files_with("a: put h\nb: get p -> i\nb: put i", |header, _| {
        header.run = if header.pid == 100 { "one" } else { "two" }.into();
    }));
    let runs: Vec<_> = judgement.processes.iter().map(|process| process.run.as_str()).collect();
    assert_eq!(runs, ["one", "two"]);
    let text = forms::form(|out| urscope_analyzer::report::text(&judgement, out, false));
    let said = "\n  these are traces of 2 runs, judged together: \"one\" (1 process), \"two\" (1 process); --run NAME judges\n  one alone\n";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("exited; run \"two\"\n"), "{text}");
}

#[test]
fn what_a_process_has_from_before_it_was_traced_is_no_mistake() {
    let from_then = "p: get a -> g\np: put g\np: put h";
    assert_eq!(judged(&files(from_then)).verdict, Verdict::Findings, "otherwise nobody got it");
    let late = |header: &mut urscope_schema::trace::records::Header, _: &mut _| header.late = true;
    let judgement = judged(&files_with(from_then, late));
    assert_eq!((judgement.verdict, judgement.exit), (Verdict::PartlyJudged, 2), "{:?}", judgement.findings);
    let reason = judgement.reason.unwrap();
    assert!(reason.starts_with("urscope came into p (pid ") && reason.ends_with("is not known"), "{reason}");
    assert!(judgement.processes[0].late);
    let faulty = judged(&files_with("p: get a -> h\np: put h\np: put h", late));
    assert_eq!(faulty.verdict, Verdict::Findings);
    assert!(faulty.reason.unwrap().starts_with("urscope came into p"), "{:?}", faulty.limits);
}

#[test]
fn a_run_of_which_ranks_were_left_out_is_not_clean() {
    let chosen = |header: &mut urscope_schema::trace::records::Header, _: &mut _| header.ranks = "0,3-5".into();
    let judgement = judged(&files_with(CLEAN_RUN, chosen));
    assert_eq!((judgement.verdict, judgement.exit, judgement.findings.len()), (Verdict::PartlyJudged, 2, 0));
    assert!(judgement.reason.unwrap().starts_with("only the ranks 0,3-5 were traced"));
    let faulty = judged(&files_with("p: get a -> h\np: put h\np: put h", chosen));
    assert_eq!(faulty.verdict, Verdict::Findings);
    assert!(faulty.reason.unwrap().starts_with("only the ranks 0,3-5 were traced"), "{:?}", faulty.limits);
}

#[test]
fn a_judgement_lists_the_processes_that_it_does_not_cover() {
    let judgement = judged(&files_with(&format!("{CLEAN_RUN}\nblind: exit"), |header, entry_point| {
        if header.executable == "/app/blind" {
            entry_point.problem = "its table is unknown".into();
        }
    }));
    assert_eq!(judgement.verdict, Verdict::Clean);
    let expected = "in blind (pid 300) the entry point adapter-table";
    assert!(judgement.unseen[0].starts_with(expected), "{:?}", judgement.unseen);
}
