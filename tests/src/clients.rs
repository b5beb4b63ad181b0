//! Communication libraries and allocators that share memory through Level Zero itself, and a profiler beside them, each
//! in a run in which nothing is wrong.

use std::{path::PathBuf, time::Duration};

use tempfile::TempDir;

use crate::processor::{self, INTEL_SHMEM};
use crate::report::tells_every_signal;
use crate::{Adapter, Outcome, Release, TestRun, apps, launcher, python_with};

/// One client: a library, and what a program does with it.
#[derive(Debug)]
pub struct Client {
    /// What a table calls it.
    pub name: &'static str,
    /// How many processes share memory.
    pub processes: usize,
    /// Makes a run of it, which lasts as long as its folder.
    pub run: fn() -> (TestRun, Option<TempDir>),
    /// What standard output holds, and how often, if the data are right.
    right: (&'static str, usize),
    /// What it needs of the processor beyond what all programs of the tests need.
    needs: &'static [&'static str],
}

/// All clients. Each takes seconds, but for the reductions of oneCCL.
pub const CLIENTS: [Client; 17] = [
    client("Intel MPI, 2 ranks", 2, || alone(intel_mpi(2, "")), (": right\n", 2)),
    client("Intel MPI, 4 ranks", 4, || alone(intel_mpi(4, "")), (": right\n", 4)),
    client("Intel MPI, reductions", 2, || alone(intel_mpi(2, "reduce").with_engine()), (": right\n", 2)),
    client("Intel MPI 2021.19", 2, || alone(intel_mpi_of("impi-2021.19.0", 2, "")), (": right\n", 2)),
    client("Intel MPI 2021.19, reductions", 2, newest_reductions, (": right\n", 2)),
    client("IMB-MPI1-GPU, 2 ranks", 2, || alone(imb(2)), ("# Benchmarking ", IMB.len())),
    client("IMB-MPI1-GPU, 4 ranks", 4, || alone(imb(4)), ("# Benchmarking ", IMB.len())),
    client("oneCCL, pidfd", 2, || oneccl("pidfd", "move"), (": right\n", 2)),
    client("oneCCL, sockets", 2, || oneccl("sockets", "without-pairs"), (": right\n", 2)),
    client("oneCCL, no exchange", 2, || oneccl("none", "move"), (": right\n", 2)),
    client("oneCCL 2022.2, pidfd", 2, || oneccl_of("oneccl-2022.2.0", "pidfd", "move"), (": right\n", 2)),
    client("oneCCL, reductions", 2, reductions_of_oneccl, (": right\n", 2)),
    client("Intel SHMEM, 2 elements", 2, || alone(intel_shmem(2, "1")), (": right\n", 2)).needing(INTEL_SHMEM),
    client("Intel SHMEM, 4 elements", 4, || alone(intel_shmem(4, "1")), (": right\n", 4)).needing(INTEL_SHMEM),
    client("Intel SHMEM, sockets", 2, || alone(intel_shmem(2, "0")), (": right\n", 2)).needing(INTEL_SHMEM),
    client("libumf", 2, || alone(umf("right")), ("right\n", 1)),
    client("intel-pti", 2, || alone(pti("right")), (": recorded\n", 2)),
];

const fn client(
    name: &'static str,
    processes: usize,
    run: fn() -> (TestRun, Option<TempDir>),
    right: (&'static str, usize),
) -> Client {
    Client { name, processes, run, right, needs: &[] }
}

impl Client {
    const fn needing(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    /// What it needs and the processor lacks.
    pub fn lacks(&self) -> Vec<&'static str> {
        processor::lacks(self.needs)
    }

    /// What is wrong with a run of it: with its data, its verdict, or its end. On a processor that cannot run it, its
    /// end must be told.
    pub fn complaint(&self, outcome: &Outcome) -> Option<String> {
        if !self.lacks().is_empty() {
            return dies_of_its_instructions(outcome);
        }
        let (text, times) = self.right;
        if outcome.code != 0 {
            return Some(format!("it ended with {}", outcome.code));
        }
        if outcome.stdout.matches(text).count() != times {
            return Some("its data are wrong".into());
        }
        let report = outcome.report();
        if report.verdict() != "clean" {
            return Some(format!("it was judged {}: {}", report.verdict(), report.violations().join(", ")));
        }
        let processes = report.processes().len();
        (processes != self.processes).then(|| format!("{processes} processes were judged"))
    }
}

/// What is wrong with the run of a program with instructions that the processor lacks.
pub fn dies_of_its_instructions(outcome: &Outcome) -> Option<String> {
    let report = outcome.report();
    let told = report.reason().unwrap_or_default();
    // It may have made calls before.
    let is_incomplete = ["not-judged", "partly-judged"].contains(&report.verdict());
    let is_told = is_incomplete && (told.contains("died of SIGILL") || !tells_every_signal());
    (!is_told || outcome.code == 0)
        .then(|| format!("it ended with {}, and was judged {}: {told}", outcome.code, report.verdict()))
}

fn alone(run: TestRun) -> (TestRun, Option<TempDir>) {
    (run, None)
}

/// A release of Intel MPI, the last one that brings a libfabric.
const INTEL_MPI: &str = "impi-2021.18.1";

/// The folder of a release of Intel MPI, and a run of so many ranks under its launcher.
fn ranks_of_intel_mpi(release: &str, ranks: usize) -> (PathBuf, TestRun) {
    let mpiexec = launcher(release);
    let environment = mpiexec.parent().unwrap().parent().unwrap().to_owned();
    let run = TestRun::of_program(&mpiexec)
        .env("I_MPI_ROOT", &environment)
        .env("I_MPI_FABRICS", "shm")
        .arg("-n")
        .arg(ranks.to_string());
    (environment, run)
}

/// With the library's own sharing of device memory.
fn with_offload(release: &str, ranks: usize) -> (PathBuf, TestRun) {
    let (environment, run) = ranks_of_intel_mpi(release, ranks);
    let mut folders = environment.join("lib").display().to_string();
    if release != INTEL_MPI {
        let with_libfabric = launcher(INTEL_MPI).parent().unwrap().with_file_name("lib");
        folders = format!("{folders}:{}", with_libfabric.display());
    }
    (environment, run.env("I_MPI_OFFLOAD", "1").env("LD_LIBRARY_PATH", folders))
}

/// Messages and collectives of memory of each kind. `mode` is the argument of `mpi_ring.py`, or empty.
pub fn intel_mpi(ranks: usize, mode: &str) -> TestRun {
    intel_mpi_of(INTEL_MPI, ranks, mode)
}

fn newest_reductions() -> (TestRun, Option<TempDir>) {
    alone(intel_mpi_of("impi-2021.19.0", 2, "reduce").with_engine())
}

fn intel_mpi_of(release: &str, ranks: usize, mode: &str) -> TestRun {
    let (environment, run) = with_offload(release, ranks);
    run.arg(environment.join("bin/python")).arg(apps::source("mpi_ring.py")).arg(mode)
}

/// The benchmarks of Intel's own suite that need no kernels.
const IMB: [&str; 7] = ["PingPong", "Sendrecv", "Exchange", "Bcast", "Allgather", "Gather", "Alltoall"];

/// Two messages of each size from 4 to 64 KiB.
fn imb(ranks: usize) -> TestRun {
    let (environment, run) = with_offload(INTEL_MPI, ranks);
    let run = run.arg(environment.join("bin/IMB-MPI1-GPU"));
    let options = [
        "-mem_alloc_type",
        "device",
        "-msglog",
        "12:16",
        "-zero_size",
        "off",
        "-iter",
        "2",
        "-npmin",
        &ranks.to_string(),
    ];
    options.iter().chain(&IMB).fold(run, |run, argument| run.arg(*argument))
}

/// Collectives of oneCCL. The ranks exchange descriptors in this way; `what` is the second argument of
/// `ccl_collectives.cpp`.
pub fn oneccl(exchange: &str, what: &str) -> (TestRun, Option<TempDir>) {
    oneccl_of("oneccl-2022.1.2", exchange, what)
}

/// Collectives of this release of oneCCL, as [`oneccl`] has them. The program is compiled with the oldest.
fn oneccl_of(release: &str, exchange: &str, what: &str) -> (TestRun, Option<TempDir>) {
    let program = apps::executable("ccl_collectives", Release::R2026_2);
    let library = python_with(release).parent().unwrap().parent().unwrap().to_owned();
    let (mpi, run) = ranks_of_intel_mpi(INTEL_MPI, 2);
    let runtime = Release::R2026_2.folder().join("lib");
    let folders = [library.join("lib"), mpi.join("lib"), runtime].map(|folder| folder.display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let run = run
        .adapter(Adapter::V2)
        .env("FI_PROVIDER_PATH", mpi.join("lib"))
        .env("LD_LIBRARY_PATH", folders.join(":"))
        .env("CCL_ROOT", &library)
        .env("CCL_ATL_TRANSPORT", "mpi")
        .env("CCL_ENABLE_SYCL_KERNELS", "0")
        // Its warnings go to standard output.
        .env("CCL_LOG_LEVEL", "error")
        .env("CCL_ZE_IPC_EXCHANGE", exchange)
        // The software device has no links between its devices.
        .env("CCL_TOPO_FABRIC_VERTEX_CONNECTION_CHECK", "0")
        .arg(program)
        .arg(folder.path().join("address"))
        .arg(what);
    (run, Some(folder))
}

/// Processing elements of Intel SHMEM, which exchange descriptors by pidfd ("1") or by sockets ("0"). Its library is
/// one for the runtime 2025.3.
pub fn intel_shmem(elements: usize, by_pidfd: &str) -> TestRun {
    let program = apps::executable("shmem_exchange", Release::R2025_3);
    let (mpi, run) = ranks_of_intel_mpi(INTEL_MPI, elements);
    run.adapter(Adapter::V2)
        .env("FI_PROVIDER_PATH", mpi.join("lib"))
        .env("FI_PROVIDER", "shm")
        .env("ISHMEM_RUNTIME", "MPI")
        .env("ISHMEM_ENABLE_GPU_IPC_PIDFD", by_pidfd)
        .arg(program)
}

fn reductions_of_oneccl() -> (TestRun, Option<TempDir>) {
    let (run, folder) = oneccl("pidfd", "reduce");
    // The kernels of oneCCL are one module of 5 MB. The program has the engine build it without optimization,
    // which takes 12 seconds of processor time, and longer where it widens kernels.
    let run = run.with_engine().env("CL_CONFIG_CPU_VECTORIZER_MODE", "1").limit(Duration::from_mins(10));
    (run, folder)
}

/// Memory of a pool of libumf. `what` is the argument of `umf_memory.cpp`.
pub fn umf(what: &str) -> TestRun {
    TestRun::new("umf_memory", Release::R2026_2, Adapter::V2).arg(what)
}

/// Memory that is shared while PTI profiles. `what` is the argument of `pti_views.cpp`.
pub fn pti(what: &str) -> TestRun {
    let library = python_with("intel-pti-1.2.0").parent().unwrap().parent().unwrap().join("lib");
    let folders = [library, Release::R2026_2.folder().join("lib")].map(|folder| folder.display().to_string());
    TestRun::new("pti_views", Release::R2026_2, Adapter::V2).env("LD_LIBRARY_PATH", folders.join(":")).arg(what)
}
