//! Property tests: what must hold when any reports are merged.

use proptest::prelude::*;
use urscope_rules::Severity;

use super::{Key, Node, Report};
use crate::analysis::{Ended, FoundFinding, Frame, Location, Occurrence, Options, ProcessSummary};

fn finding() -> impl Strategy<Value = FoundFinding> {
    let severity = prop::sample::select(Severity::ALL.to_vec());
    (0..3_u8, severity, 0..3_u64, 1..4_u64, 0..3_u32).prop_map(|(what, severity, time_ns, count, pid)| {
        let host = "h".into();
        let executable = "/app".into();
        let function = Some("urUSMFree".into());
        let process = Location { host, pid, executable, tid: pid, time_ns, function, ..Location::default() };
        FoundFinding {
            rule: format!("rule-{what}"),
            severity,
            time_ns,
            message: format!("pid {pid}"),
            count,
            identity: format!("{what:016x}"),
            ..FoundFinding::note_at(process)
        }
    })
}

fn summary(host: &str, pid: u32, calls: u64, began_ns: u64) -> ProcessSummary {
    let host = host.to_owned();
    let executable = "/app".into();
    let file = format!("{pid}.json");
    let ended = Ended::Exited;
    ProcessSummary {
        pid,
        host,
        executable,
        began_ns,
        calls,
        ipc_calls: calls,
        ended,
        file,
        ..ProcessSummary::default()
    }
}

/// There are few hosts, so that the same host is often in several reports.
fn node() -> impl Strategy<Value = Node> {
    let findings = prop::collection::vec(finding(), 0..4);
    (0..4_u64, 0..2_u64, 1..3_u32, 0..5_u64, findings, 0..2_u64).prop_map(
        |(boot, run, processes, calls, findings, duplicates)| {
            let host = format!("host{boot}");
            let monotonic_ns = 1000 * boot;
            let key = Key { boot: format!("boot {boot}"), time_namespace: 1, runs: [format!("run {run}")].into() };
            Node {
                key,
                monotonic_ns,
                // The real time of boot 0 is not known.
                realtime_ns: 77 * boot,
                processes: (0..processes)
                    .map(|pid| summary(&host, pid, calls, monotonic_ns + u64::from(pid)))
                    .collect(),
                calls: [("urUSMFree".to_owned(), calls)].into(),
                host,
                findings,
                duplicates,
                ..Node::default()
            }
        },
    )
}

fn report() -> impl Strategy<Value = Report> {
    let headless = prop::collection::btree_set("[ab]", 0..2);
    (prop::collection::vec(node(), 0..4), headless)
        .prop_map(|(nodes, headless)| Report::default().merge(Report { nodes, headless, ..Report::default() }))
}

proptest! {
    #[test]
    fn merging_is_associative(a in report(), b in report(), c in report()) {
        prop_assert_eq!(a.clone().merge(b.clone()).merge(c.clone()), a.merge(b.merge(c)));
    }

    #[test]
    fn merging_is_commutative(a in report(), b in report()) {
        prop_assert_eq!(a.clone().merge(b.clone()), b.merge(a));
    }

    #[test]
    fn merging_an_empty_report_changes_nothing(a in report()) {
        prop_assert_eq!(a.clone().merge(Report::default()), a);
    }

    #[test]
    fn a_written_report_is_read_back_unchanged(a in report()) {
        let mut text = Vec::new();
        a.write(&mut text).unwrap();
        prop_assert_eq!(Report::parse("a".as_ref(), &text).unwrap(), a);
    }

    #[test]
    fn no_finding_is_lost_and_none_is_counted_twice(a in report(), b in report()) {
        let options = Options::default();
        let merged = a.merge(b);
        let expected: u64 = merged.nodes.iter().flat_map(|node| &node.findings).map(|finding| finding.count).sum();
        let judgement = merged.judgement(&[], &options);
        prop_assert_eq!(judgement.findings.iter().map(|finding| finding.count).sum::<u64>(), expected);
        if merged.nodes.len() > 1 {
            for finding in &judgement.findings {
                prop_assert_eq!(finding.hosts.values().sum::<u64>(), finding.count);
            }
        }
    }
}

#[test]
fn findings_of_several_processes_at_one_call_site_are_one() {
    let frame = |line| Frame::new("exchange_halo(int)", "/src/ring.cpp", line);
    let found = |pid: u32, line: Option<u32>| {
        let executable = "/app".to_owned();
        let stack = line.map(frame).into_iter().collect();
        let host = "h".to_owned();
        let time_ns = u64::from(100 - pid);
        let function = Some("urUSMFree".to_owned());
        let occurring = host.clone();
        let rank = Some(pid);
        let at = Location { host, pid, rank, executable, tid: pid, ..Location::default() };
        let process = Location { time_ns, function, stack, ..at };
        let occurrence = Occurrence { host: occurring, pid, rank, time_ns, count: 1, ..Occurrence::default() };
        let rule = "double-put".into();
        let severity = Severity::Error;
        let occurrences = vec![occurrence];
        FoundFinding { rule, severity, time_ns, occurrences, ..FoundFinding::note_at(process) }
    };
    let judged = |findings: Vec<FoundFinding>| {
        let report = Report { nodes: vec![Node { findings, ..Node::default() }], ..Report::default() };
        report.judgement(&[], &Options::default()).findings
    };
    let same = judged(vec![found(3, Some(37)), found(12, Some(37)), found(4, Some(37)), found(5, Some(38))]);
    let [first, second] = &same[..] else { panic!("two call sites: {same:#?}") };
    assert_eq!((first.count, first.process.pid, first.hosts.len()), (3, 12, 0), "the earliest is shown");
    let ranks: Vec<_> = first.occurrences.iter().map(|occurrence| occurrence.rank).collect();
    assert_eq!(ranks, [Some(3), Some(4), Some(12)]);
    assert_eq!((second.count, second.process.pid), (1, 5));
    assert_eq!(judged(vec![found(3, None), found(4, None)]).len(), 2, "without stacks, nobody knows");

    let notes = FoundFinding { severity: Severity::Note, count: 255, ..found(99, Some(37)) };
    let both = judged(vec![notes, FoundFinding { count: 345, ..found(3, Some(37)) }]);
    let [one] = &both[..] else { panic!("one cause: {both:#?}") };
    assert_eq!((one.severity, one.process.pid, one.count), (Severity::Error, 3, 600), "the most severe is shown");
    assert_eq!(one.severities, [("error".into(), 345), ("note".into(), 255)].into());
}

#[test]
fn a_second_report_of_a_node_is_ignored_and_reported() {
    let key = Key { boot: "b".into(), ..Key::default() };
    let node = Node { key, host: "node7".into(), processes: vec![summary("node7", 1, 2, 0)], ..Node::default() };
    let calls = [("urIPCGetMemHandleExp".to_owned(), 2)].into();
    let report = Report { nodes: vec![Node { calls, ..node }], ..Report::default() };
    let judgement = report.clone().merge(report).judgement(&[], &Options::default());
    assert_eq!((judgement.processes.len(), judgement.calls["urIPCGetMemHandleExp"]), (1, 2));
    assert_eq!(judgement.unseen, ["1 more report of the node node7 (boot b) ignored: give one report for each node"]);
}

#[test]
fn impossibly_large_counts_are_rejected() {
    let calls = |count| Report {
        nodes: vec![Node { calls: [("urUSMFree".to_owned(), count)].into(), ..Node::default() }],
        ..Report::default()
    };
    let parsed = |report: Report| {
        let mut text = Vec::new();
        report.write(&mut text).unwrap();
        Report::parse("a".as_ref(), &text)
    };
    assert!(parsed(calls(1 << 40)).is_ok());
    assert!(parsed(calls(u64::MAX)).unwrap_err().to_string().contains("it has a count of 18446744073709551615"));
}
