//! Merging the reports of all nodes of a job gives the same verdict as an analysis of all traces at once.

use std::fs;

use clap::Parser as _;
use serde_json::{Value, json};

use crate::command::Workspace;
use crate::generator::Generator;

const NODES: usize = 64;
const RANKS: u64 = 12;

/// A workspace with the traces of a job, and the names of the nodes' directories.
fn job(nodes: usize) -> (Workspace, Vec<String>) {
    let workspace = Workspace::new();
    let directory = workspace.path().to_str().unwrap();
    let hosts = nodes.to_string();
    let ranks = RANKS.to_string();
    let arguments =
        ["generator", directory, "--hosts", &hosts, "--ranks", &ranks, "--cycles", "4", "--leak", "2", "--double", "1"];
    Generator::parse_from(arguments).generate().unwrap();
    (workspace, (0..nodes).map(|node| format!("node{node:03}")).collect())
}

fn with<'a>(first: &[&'a str], rest: &'a [String]) -> Vec<&'a str> {
    first.iter().copied().chain(rest.iter().map(String::as_str)).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The judgement of merged reports.
fn merged(workspace: &Workspace, reports: &[String]) -> Value {
    parsed(&workspace.run(&with(&["merge", "--format", "json"], reports)).stdout)
}

/// Analyzes each node separately. Returns the names of the reports.
fn reports(workspace: &Workspace, nodes: &[String]) -> Vec<String> {
    // Every second report is compressed.
    let report = |(index, node): (usize, &String)| {
        let packed = index % 2 == 1;
        let name = format!("{node}.urscope{}", if packed { ".gz" } else { "" });
        let ended = workspace.run(&["check", "--node-report", &name, node]);
        assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
        assert_eq!(fs::read(workspace.path().join(&name)).unwrap().starts_with(&[0x1f, 0x8b]), packed);
        name
    };
    nodes.iter().enumerate().map(report).collect()
}

#[test]
fn merged_reports_equal_an_analysis_of_all_traces_at_once() {
    let (workspace, nodes) = job(NODES);
    let at_once = workspace.run(&with(&["check", "--format", "json"], &nodes));
    assert_eq!(at_once.code, 1, "{}", at_once.stderr);
    let mut reports = reports(&workspace, &nodes);
    reports.reverse();
    let merged = workspace.run(&with(&["merge", "--format", "json"], &reports));
    assert_eq!((merged.code, merged.stderr.as_str()), (1, ""));
    assert_eq!(parsed(&merged.stdout), parsed(&at_once.stdout));

    let judgement = parsed(&merged.stdout);
    assert_eq!(judgement["processes"].as_array().unwrap().len() as u64, NODES as u64 * RANKS);
    let findings = judgement["findings"].as_array().unwrap();
    let counts: Vec<_> = findings.iter().map(|finding| (&finding["rule"], &finding["count"])).collect();
    let every = NODES as u64 * RANKS;
    assert_eq!(counts, [(&json!("double-close"), &json!(every)), (&json!("leaked-handle"), &json!(2 * every))]);
    let hosts = findings[1]["hosts"].as_object().unwrap();
    assert_eq!((hosts.len(), &hosts["node063"]), (NODES, &json!(2 * RANKS)));

    let text = workspace.run(&with(&["merge"], &reports));
    assert!(text.stdout.contains("hosts: node000 (24), node001 (24), "), "{}", text.stdout);
    assert!(text.stdout.contains("and 56 more"), "{}", text.stdout);

    for form in ["junit", "github", "sarif"] {
        let output = workspace.run(&with(&["merge", "--format", form], &reports)).stdout;
        assert!(
            output.contains("osts: node000 (24), node001 (24), ") && output.contains("and 56 more"),
            "{form}: {output}"
        );
        assert!(!output.contains("node063 (24)"), "{form} must not list all hosts");
    }
    let page = workspace.run(&with(&["merge", "--format", "html"], &reports)).stdout;
    assert!(page.contains("hosts: node000 (24), ") && page.contains("node063 (24)"), "a page lists all hosts");
    let sarif = parsed(&workspace.run(&with(&["merge", "--format", "sarif"], &reports)).stdout);
    assert_eq!(sarif["runs"][0]["results"][1]["properties"]["hosts"], findings[1]["hosts"]);

    // Merge each rack, then the racks.
    let (left, right) = reports.split_at(NODES / 3);
    assert_eq!(workspace.run(&with(&["merge", "--node-report", "left.urscope"], left)).code, 1);
    assert_eq!(workspace.run(&with(&["merge", "--node-report", "right.urscope"], right)).code, 1);
    let of_racks = workspace.run(&["merge", "--format", "json", "left.urscope", "right.urscope"]);
    assert_eq!(parsed(&of_racks.stdout)["findings"], judgement["findings"]);
}

#[test]
fn a_finding_is_attributed_to_its_own_host_if_another_has_the_same_pid() {
    let (workspace, nodes) = job(2);
    let reports = reports(&workspace, &nodes);
    let judgement = merged(&workspace, &reports);
    // The other host, with the same process numbers and programs, comes first.
    let mut shuffled = judgement.clone();
    shuffled["processes"].as_array_mut().unwrap().reverse();
    let host = judgement["findings"][0]["process"]["host"].as_str().unwrap();
    let shuffled: urscope_analyzer::Judgement = serde_json::from_value(shuffled).unwrap();
    let mut out = Vec::new();
    urscope_analyzer::report::junit(&shuffled, &mut out).unwrap();
    let xml = String::from_utf8(out).unwrap();
    // The ranks of the two hosts are alike here, so they share suites. The failure names the host.
    let failure = xml.split("<failure ").nth(1).unwrap();
    assert!(failure.split('>').next().unwrap().contains(&format!("(hosts: {host} (")), "{failure}");
}

#[test]
fn times_of_all_hosts_have_one_axis() {
    let (workspace, nodes) = job(3);
    let reports = reports(&workspace, &nodes);
    let first = |report: &String| {
        let merged = merged(&workspace, &[report.clone(), reports[0].clone()]);
        merged["findings"][0]["process"]["time_ns"].as_u64().unwrap()
    };
    // The first node begins first, independent of its monotonic clock.
    assert_eq!(first(&reports[0]), first(&reports[2]));
    let pair = merged(&workspace, &[reports[2].clone(), reports[1].clone()]);
    let one = merged(&workspace, &reports[1..2]);
    let two = merged(&workspace, &reports[2..]);
    assert_eq!(one["findings"][0]["time_ns"], two["findings"][0]["time_ns"]);
    assert_eq!(pair["findings"][0]["process"]["host"], "node001");
    let hosts: Vec<_> = pair["processes"].as_array().unwrap().iter().map(|seen| seen["host"].clone()).collect();
    assert_eq!(hosts, [vec![json!("node001"); 12], vec![json!("node002"); 12]].concat());
}

#[test]
fn a_report_is_named_after_its_host_and_rank() {
    let (workspace, nodes) = job(2);
    let mut command = workspace.command(&["check", "--node-report", "%h-%r-%%.urscope", &nodes[0]]);
    command.env("OMPI_COMM_WORLD_RANK", "7");
    assert_eq!(workspace.start(command).end().code, 1);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(workspace.path().join(format!("{}-7-%.urscope", host.trim())).exists());
}

#[test]
fn files_that_are_not_reports_of_this_version_are_refused() {
    let (workspace, nodes) = job(2);
    let report = &reports(&workspace, &nodes)[0];
    let text = fs::read_to_string(workspace.path().join(report)).unwrap();
    let newer = text.replacen("\"urscope_report\":1,\"urscope\":\"", "\"urscope_report\":2,\"urscope\":\"9.", 1);
    fs::write(workspace.path().join("newer"), newer).unwrap();
    let refused = workspace.run(&["merge", report, "newer"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("newer has report version 2 (written by urscope 9."), "{}", refused.stderr);

    fs::write(workspace.path().join("cut"), &text[..text.len() / 2]).unwrap();
    fs::write(workspace.path().join("judgement"), workspace.run(&["check", "--format", "json", &nodes[0]]).stdout)
        .unwrap();
    for wrong in ["cut", "judgement", "nowhere"] {
        let refused = workspace.run(&["merge", wrong]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
        assert!(refused.stderr.contains("check --node-report wrote"), "{}", refused.stderr);
    }
}

#[test]
fn a_duplicate_report_is_noted_and_counted_once() {
    let (workspace, nodes) = job(2);
    let reports = reports(&workspace, &nodes);
    let once = merged(&workspace, &reports);
    let twice = merged(&workspace, &[1, 0, 1].map(|node: usize| reports[node].clone()));
    assert_eq!(twice["findings"], once["findings"]);
    assert_eq!(twice["processes"], once["processes"]);
    let note = "1 more report of the node node001 (boot 00000000-0000-0000-0000-000000000001) ignored: give one report for each node";
    assert_eq!(twice["unseen"], json!([note]));
}
