//! Communication libraries that share device memory through Level Zero itself: right in their data, clean, and guilty with a mistake.

use urscope_tests::{Outcome, TestRun, apps, launcher, trace};

/// Ranks under Intel MPI's launcher, with the library's own sharing of device memory.
fn intel_mpi(ranks: usize, mode: Option<&str>) -> Outcome {
    let mpiexec = launcher("impi-2021.18.1");
    let environment = mpiexec.parent().unwrap().parent().unwrap().to_owned();
    let run = TestRun::of_program(&mpiexec)
        .env("I_MPI_OFFLOAD", "1")
        .env("I_MPI_FABRICS", "shm")
        .env("LD_LIBRARY_PATH", environment.join("lib"))
        .arg("-n")
        .arg(ranks.to_string())
        .arg(environment.join("bin/python"))
        .arg(apps::source("mpi_ring.py"));
    mode.into_iter().fold(run, TestRun::arg).run()
}

#[test]
fn intel_mpi_is_right_and_clean() {
    for ranks in [2, 4] {
        let outcome = intel_mpi(ranks, None);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        for rank in 0..ranks {
            assert!(outcome.stdout.contains(&format!("rank {rank}: right\n")), "{}", outcome.stdout);
        }
        let report = outcome.report();
        assert_eq!(report.verdict(), "clean", "{report:#?}");
        assert_eq!(report.processes().len(), ranks, "{report:#?}");
        let traces = outcome.traces();
        let opens = trace::count(&traces, "B", "zeMemOpenIpcHandle");
        assert!(opens > 0 && trace::count(&traces, "B", "zeMemGetIpcHandle") > opens / 2, "{report:#?}");
        assert_eq!(opens, trace::count(&traces, "B", "zeMemCloseIpcHandle"));
    }
}

#[test]
fn a_cache_that_outlives_the_memory_is_found_beside_intel_mpi() {
    let outcome = intel_mpi(2, Some("stale"));
    let report = outcome.report();
    let found = report.finding("use-after-free");
    assert_eq!(found["severity"], "error", "{report:#?}");
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with("rank 1 (pid ") && message.contains("zeMemOpenIpcHandle"), "{message}");
    let frames = found["frames"].to_string();
    assert!(frames.contains("open_stale"), "{found:#?}");
}
