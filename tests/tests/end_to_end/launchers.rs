//! MPI launchers pass on the environment, so every rank is traced and judged.

use std::{fs, path::Path};

use urscope_tests::{Adapter, Release, Report, TestRun, apps, launcher, run::urscope};

/// The launchers, and the arguments with which each starts two ranks on this machine, also as root.
const LAUNCHERS: [(&str, &[&str]); 2] = [
    ("mpich-5.0.2", &["-launcher", "fork", "-n", "2"]),
    ("openmpi-5.0.11", &["--allow-run-as-root", "--oversubscribe", "-n", "2"]),
];

#[test]
fn the_ranks_of_an_mpi_launcher_are_one_run() {
    for (release, arguments) in LAUNCHERS {
        for adapter in [Adapter::V1, Adapter::V2] {
            let folder = tempfile::tempdir().unwrap();
            let mpiexec = launcher(release);
            let start = arguments
                .iter()
                .fold(TestRun::of_program(&mpiexec).adapter(adapter), |test_run, word| test_run.arg(*word));
            let outcome = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).run();
            let mut printed: Vec<_> = outcome.stdout.lines().collect();
            printed.sort_unstable();
            assert_eq!((outcome.code, printed.len()), (0, 2), "{release}: {}\n{}", outcome.stdout, outcome.stderr);
            let report = outcome.report();
            assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{release}: {report:#?}");
            assert_eq!(outcome.traces().len(), 2, "{release}: the launcher itself has no runtime: {}", outcome.stderr);
        }
    }
}

#[test]
fn every_rank_may_have_a_directory_of_its_own() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for (release, arguments) in LAUNCHERS {
        let folder = tempfile::tempdir().unwrap();
        let traces = tempfile::tempdir().unwrap();
        let root = traces.path().to_str().unwrap();
        let test_run = TestRun::of_program(launcher(release)).option("--no-check");
        let start = arguments.iter().fold(test_run, |test_run, word| test_run.arg(*word));
        let start = start.arg("/usr/bin/env").arg(format!("URSCOPE_DIR={root}/%h/rank-%r"));
        let outcome = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).run();
        assert_eq!(outcome.code, 0, "{release}: {}", outcome.stderr);
        let ranks = [0, 1].map(|rank| format!("{root}/{}/rank-{rank}", host.trim()));
        for rank in &ranks {
            let files = fs::read_dir(rank).unwrap_or_else(|error| panic!("{release}: {rank}: {error}"));
            assert_eq!(files.count(), 1, "{release}: {rank}");
        }
        let judged = urscope(&["check", &ranks[0], &ranks[1]]);
        assert_eq!(judged.code, 0, "{release}: {}", judged.stdout);
    }
}

/// Runs two ranks, of which each has an urscope of its own that writes into these traces: `mpiexec urscope run -- app`.
/// Returns the exit code, and what was written to standard error.
fn each_rank_under_urscope(
    launcher_at: usize,
    adapter: Adapter,
    traces: &Path,
    options: &[&str],
    mode: Option<&str>,
) -> (i32, String) {
    let (release, arguments) = LAUNCHERS[launcher_at];
    let folder = tempfile::tempdir().unwrap();
    let test_run = TestRun::of_program(launcher(release)).adapter(adapter).untraced();
    let start = arguments.iter().fold(test_run, |test_run, word| test_run.arg(*word));
    let start = start.arg(urscope_tests::artefacts::command());
    let start = ["run", "--device", "software", "--format", "json"]
        .iter()
        .chain(options)
        .fold(start, |run, word| run.arg(*word));
    let start = start.arg("--dir").arg(traces).arg("--report").arg(traces.with_extension("report")).arg("--");
    let start = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path());
    let outcome = mode.into_iter().fold(start, TestRun::arg).run();
    (outcome.code, outcome.stderr)
}

#[test]
fn ranks_that_have_each_an_urscope_are_judged_together_once() {
    for at in 0..LAUNCHERS.len() {
        for adapter in [Adapter::V1, Adapter::V2] {
            let folder = tempfile::tempdir().unwrap();
            let traces = folder.path().join("traces");
            let (code, stderr) = each_rank_under_urscope(at, adapter, &traces, &[], None);
            let report = Report::parse(&fs::read_to_string(traces.with_extension("report")).unwrap());
            assert_eq!((code, report.verdict()), (0, "clean"), "{stderr}");
            assert_eq!(report.processes().len(), 2, "{stderr}");
            let leaving = "the last rank to end on this host judges all of them";
            assert_eq!(stderr.matches(leaving).count(), 1, "{stderr}");
            // The file by which the ranks agree is gone.
            let hidden = fs::read_dir(&traces)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
            assert_eq!(hidden.count(), 0);
        }
    }
}

/// Slurm gives a batch script a rank, and the launchers inherit it.
#[test]
fn launchers_of_one_batch_script_start_two_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"cd "$0"; for job in a b; do
        mkdir $job; "$1" -launcher fork -n 2 "$2" run --device software --format json --dir traces --report $job.json -- "$3" $job &
    done; wait"#;
    let start = TestRun::of_program("/bin/bash").untraced().env("SLURM_PROCID", "0").env("SLURM_JOB_ID", "7");
    let start = start.arg("-c").arg(script).arg(folder.path()).arg(launcher(LAUNCHERS[0].0));
    let start = start.arg(urscope_tests::artefacts::command());
    let outcome = start.arg(apps::executable("clean_ranks", Release::R2026_2)).run();
    for job in ["a.json", "b.json"] {
        let report = Report::parse(&fs::read_to_string(folder.path().join(job)).unwrap_or_default());
        let judged = (report.verdict(), report.processes().len());
        assert_eq!(judged, ("clean", 2), "{}", outcome.stderr);
    }
}

#[test]
fn what_one_rank_forgets_fails_the_job() {
    for at in 0..LAUNCHERS.len() {
        let folder = tempfile::tempdir().unwrap();
        let traces = folder.path().join("traces");
        let (code, stderr) = each_rank_under_urscope(at, Adapter::V2, &traces, &[], Some("leak"));
        let report = Report::parse(&fs::read_to_string(traces.with_extension("report")).unwrap());
        // If rank 0 is faster, it also frees the memory while rank 1 has it open.
        assert!(report.violations().iter().any(|found| found == "warning leaked-mapping"), "{report:#?} {stderr}");
        assert_eq!(code, 1, "{stderr}");
        let leaked = report.finding("leaked-mapping");
        let rank = &leaked["process"]["rank"];
        let pid = &leaked["process"]["pid"];
        let message = leaked["message"].as_str().unwrap();
        assert!(rank.is_u64() && message.starts_with(&format!("rank {rank} (pid {pid}) opened")), "{leaked:#?}");
    }
}

/// Each rank makes the mistake once, at the same line.
#[test]
fn what_several_ranks_forget_at_one_place_is_one_finding() {
    let (release, _) = LAUNCHERS[0];
    let folder = tempfile::tempdir().unwrap();
    let start = ["-launcher", "fork", "-n", "4"]
        .iter()
        .fold(TestRun::of_program(launcher(release)), |test_run, word| test_run.arg(*word));
    let outcome = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).arg("leak").run();
    let report = outcome.report();
    let leaked = report.finding("leaked-mapping");
    assert_eq!(leaked["count"], 3, "{leaked:#?}");
    let ranks: Vec<_> =
        leaked["occurrences"].as_array().unwrap().iter().map(|occurrence| occurrence["rank"].as_u64()).collect();
    assert_eq!(ranks, [Some(1), Some(2), Some(3)]);

    let traces = outcome.trace_files();
    let text = |options: &[&str]| {
        let traces: Vec<_> = traces.iter().map(|trace| trace.to_str().unwrap()).collect();
        urscope(&[&["check"][..], options, &traces].concat()).stdout
    };
    let head = |text: &str| {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("warning: leaked-mapping"));
        let first = lines.next().unwrap().to_owned();
        lines.take_while(|line| line.starts_with("    ")).fold(first, |head, line| format!("{head} {}", line.trim()))
    };
    let count = " (3 times in 3 processes: ranks 1-3, the first:)";
    let plain = head(&text(&[]));
    assert!(
        plain.starts_with("warning: leaked-mapping in main, in a lambda, clean_ranks.cpp:") && plain.ends_with(count),
        "{plain}"
    );
    let own = head(&text(&["--wrapper", "!app::open"]));
    assert!(own.starts_with("warning: leaked-mapping in app::open, ipc_app.hpp:") && own.ends_with(count), "{own}");
    let all = text(&["--all"]);
    for rank in 1..4 {
        let listed =
            all.lines().filter(|line| line.contains(&format!("  rank {rank} (pid ")) && line.contains("1 MiB"));
        assert!(listed.count() >= 1, "{all}");
    }
}

/// What the other rank does with the memory is not known, so nothing is clean.
#[test]
fn a_job_of_which_only_some_ranks_are_traced_is_judged_in_part() {
    let judged = |report: &Report, chosen: &str| {
        assert_eq!(report.verdict(), "partly-judged", "{report:#?}");
        let ranks: Vec<_> = report.processes().iter().map(|process| process["rank"].to_string()).collect();
        assert_eq!(ranks, [chosen], "{report:#?}");
        let reason = report.reason().unwrap();
        assert!(reason.contains(&format!("only the ranks {chosen} were traced")), "{reason}");
    };
    for (at, (release, arguments)) in LAUNCHERS.iter().enumerate() {
        for chosen in ["0", "1"] {
            let folder = tempfile::tempdir().unwrap();
            let test_run = TestRun::of_program(launcher(release)).option("--ranks").option(chosen);
            let start = arguments.iter().fold(test_run, |test_run, word| test_run.arg(*word));
            let outcome = start.arg(apps::executable("clean_ranks", Release::R2026_2)).arg(folder.path()).run();
            assert_eq!((outcome.code, outcome.stdout.lines().count()), (2, 2), "{release}: {}", outcome.stderr);
            judged(&outcome.report(), chosen);

            let traces = folder.path().join("traces");
            let (_, stderr) = each_rank_under_urscope(at, Adapter::V2, &traces, &["--ranks", chosen], None);
            let report = fs::read_to_string(traces.with_extension("report"));
            judged(&Report::parse(&report.unwrap_or_else(|error| panic!("{error}: {stderr}"))), chosen);
        }
    }
}

#[test]
fn a_rank_alone_is_judged_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stderr) = each_rank_under_urscope(0, Adapter::V2, &folder.path().join("rank-%r"), &[], None);
    assert_eq!(code, 2, "{stderr}");
    let judged = |rank: u32| {
        let ended =
            urscope(&["check", "--format", "json", folder.path().join(format!("rank-{rank}")).to_str().unwrap()]);
        let report = Report::parse(&ended.stdout);
        (ended.code, report.verdict().to_owned())
    };
    assert_eq!([judged(0), judged(1)], [(0, "clean".to_owned()), (2, "partly-judged".to_owned())]);
}

/// A launcher says that there are two ranks, and one of them ran under urscope.
#[test]
fn a_rank_that_never_joined_is_said() {
    for (ranks, code, verdict) in [("2", 2, "partly-judged"), ("1", 0, "clean")] {
        let run = TestRun::new("clean", Release::R2026_2, Adapter::V2).env("PMI_RANK", "0").env("PMI_SIZE", ranks);
        let outcome = run.run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (code, verdict), "{report:#?}");
        let said = report.reason().map(|reason| reason.starts_with("1 of the 2 ranks of the job ran under urscope"));
        assert_eq!(said, (ranks == "2").then_some(true), "{report:#?}");
    }
}

/// The launcher runs under urscope, and has started ranks on another host.
#[test]
fn ranks_on_other_hosts_are_said() {
    for (here, code, verdict) in [("2", 2, "partly-judged"), ("4", 0, "clean")] {
        let run = TestRun::of_program("/usr/bin/env").arg("PMI_RANK=0").arg("PMI_SIZE=4");
        let run = run.arg(format!("MPI_LOCALNRANKS={here}")).arg(apps::executable("clean", Release::R2026_2));
        let outcome = run.run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (code, verdict), "{report:#?}");
        let said = report.reason().map(|reason| reason.starts_with("2 ranks of the job ran on other hosts"));
        assert_eq!(said, (here == "2").then_some(true), "{report:#?}");
    }
}
