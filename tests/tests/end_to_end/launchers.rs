//! MPI launchers pass on the environment, so every rank is traced and judged.

use std::fs;

use urscope_tests::{Adapter, Release, TestRun, apps, launcher, run::urscope};

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
        let (folder, traces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
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
