//! Communication libraries that share device memory through Level Zero itself: right in their data, clean, and guilty with a mistake.

use std::path::PathBuf;

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, launcher, python_with, trace};

/// The folder of Intel MPI, and a run of so many ranks under its launcher.
fn ranks_of_intel_mpi(ranks: usize) -> (PathBuf, TestRun) {
    let mpiexec = launcher("impi-2021.18.1");
    let environment = mpiexec.parent().unwrap().parent().unwrap().to_owned();
    let run = TestRun::of_program(&mpiexec).env("I_MPI_FABRICS", "shm").arg("-n").arg(ranks.to_string());
    (environment, run)
}

/// With the library's own sharing of device memory.
fn intel_mpi(ranks: usize, mode: Option<&str>) -> Outcome {
    let (environment, run) = ranks_of_intel_mpi(ranks);
    let run = run
        .env("I_MPI_OFFLOAD", "1")
        .env("LD_LIBRARY_PATH", environment.join("lib"))
        .arg(environment.join("bin/python"))
        .arg(apps::source("mpi_ring.py"));
    mode.into_iter().fold(run, TestRun::arg).run()
}

/// Collectives of oneCCL that need no kernels. The ranks exchange descriptors in this way.
fn oneccl(exchange: &str) -> Outcome {
    let program = apps::executable("ccl_collectives", Release::R2026_2);
    let library = python_with("oneccl-2022.1.2").parent().unwrap().parent().unwrap().to_owned();
    let (mpi, run) = ranks_of_intel_mpi(2);
    let runtime = Release::R2026_2.folder().join("lib");
    let folders = [library.join("lib"), mpi.join("lib"), runtime].map(|folder| folder.display().to_string());
    let folder = tempfile::tempdir().unwrap();
    run.adapter(Adapter::V2)
        .env("I_MPI_ROOT", &mpi)
        .env("FI_PROVIDER_PATH", mpi.join("lib"))
        .env("LD_LIBRARY_PATH", folders.join(":"))
        .env("CCL_ROOT", &library)
        .env("CCL_ATL_TRANSPORT", "mpi")
        .env("CCL_ENABLE_SYCL_KERNELS", "0")
        .env("CCL_ZE_IPC_EXCHANGE", exchange)
        // The software device has no links between its devices.
        .env("CCL_TOPO_FABRIC_VERTEX_CONNECTION_CHECK", "0")
        .arg(program)
        .arg(folder.path().join("address"))
        .run()
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
        // The library takes the functions of Intel's driver where there are any.
        let count = |names: &[&str]| names.iter().map(|name| trace::count(&traces, "B", name)).sum::<usize>();
        let opens = count(&["zeMemOpenIpcHandle", "zexMemOpenIpcHandles"]);
        assert!(opens > 0 && count(&["zeMemGetIpcHandle", "zexMemGetIpcHandles"]) >= opens, "{report:#?}");
        assert_eq!(opens, count(&["zeMemCloseIpcHandle"]));
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
    let stack = found["process"]["stack"].to_string();
    assert!(stack.contains("open_stale"), "{found:#?}");
}

#[test]
fn oneccl_is_right_and_clean() {
    for exchange in ["pidfd", "sockets"] {
        let outcome = oneccl(exchange);
        assert_eq!(outcome.code, 0, "{exchange}: {}", outcome.stderr);
        for rank in 0..2 {
            assert!(outcome.stdout.contains(&format!("rank {rank}: right\n")), "{exchange}: {}", outcome.stdout);
        }
        let report = outcome.report();
        assert_eq!(report.verdict(), "clean", "{exchange}: {report:#?}");
        assert!(report.calls("zeMemOpenIpcHandle") > 0, "{exchange}: {report:#?}");
    }
}
