//! Communication libraries that share device memory through Level Zero itself: right in their data, clean, and guilty
//! with a mistake.

use std::collections::BTreeMap;

use urscope_tests::clients::{self, CLIENTS, Client};
use urscope_tests::{Outcome, processor, trace};

use crate::violations::is_at;

fn client(name: &str) -> &'static Client {
    CLIENTS.iter().find(|client| client.name == name).expect("a client of the table")
}

/// Runs a client in which nothing is wrong.
fn clean(name: &str) -> Outcome {
    let client = client(name);
    let (run, _folder) = (client.run)();
    let outcome = run.run();
    let complaint = client.complaint(&outcome);
    let lacking = client.lacks();
    if !lacking.is_empty() {
        processor::untried(name, &lacking);
    }
    assert_eq!(complaint, None, "{name}: {}{}{:#?}", outcome.stdout, outcome.stderr, outcome.report());
    outcome
}

/// How often all processes called any of these, as the traces say.
fn recorded(outcome: &Outcome, names: &[&str]) -> usize {
    let traces = outcome.traces();
    names.iter().map(|name| trace::count(&traces, "B", name)).sum()
}

/// What a tracer of the loader has counted in all processes is what their traces hold.
fn each_call_is_recorded(outcome: &Outcome) {
    let mut called = BTreeMap::<&str, usize>::new();
    for line in outcome.stdout.lines().filter_map(|line| line.split_once("called: ")) {
        let words: Vec<_> = line.1.split(' ').collect();
        for pair in words.chunks(2) {
            *called.entry(pair[0]).or_default() += pair[1].parse::<usize>().unwrap();
        }
    }
    assert!(called.values().sum::<usize>() > 0, "{}", outcome.stdout);
    for (name, times) in called {
        assert_eq!(recorded(outcome, &[name]), times, "{name}");
    }
}

/// The library takes the functions of Intel's driver where there are any.
fn opens_are_closed(outcome: &Outcome) {
    let opens = recorded(outcome, &["zeMemOpenIpcHandle", "zexMemOpenIpcHandles"]);
    let gets = recorded(outcome, &["zeMemGetIpcHandle", "zexMemGetIpcHandles"]);
    assert!(opens > 0 && gets > 0, "{gets} gets, {opens} opens");
    assert_eq!(opens, recorded(outcome, &["zeMemCloseIpcHandle"]));
}

#[test]
fn intel_mpi_is_right_and_clean() {
    for name in ["Intel MPI, 2 ranks", "Intel MPI, 4 ranks"] {
        let outcome = clean(name);
        each_call_is_recorded(&outcome);
        opens_are_closed(&outcome);
    }
}

/// Without urscope, a client prints the same lines, but for the log of oneCCL, which has times.
fn prints_the_same_without_urscope(name: &str, outcome: &Outcome) {
    let (run, _folder) = (client(name).run)();
    let without = run.untraced().run();
    let is_result = |line: &&str| !line.contains(" |CCL_");
    let lines = |outcome: &Outcome| {
        let mut lines: Vec<_> = outcome.stdout.lines().filter(is_result).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!((without.code, lines(&without)), (0, lines(outcome)), "{name}: {}", without.stderr);
    assert!(without.traces().is_empty(), "{name}");
}

#[test]
fn reductions_of_intel_mpi_are_right_with_urscope_and_without() {
    let outcome = clean("Intel MPI, reductions");
    opens_are_closed(&outcome);
    prints_the_same_without_urscope("Intel MPI, reductions", &outcome);
}

#[test]
fn reductions_of_oneccl_are_right() {
    each_call_is_recorded(&clean("oneCCL, reductions"));
}

#[test]
fn benchmarks_of_intel_mpi_are_clean() {
    for name in ["IMB-MPI1-GPU, 2 ranks", "IMB-MPI1-GPU, 4 ranks"] {
        opens_are_closed(&clean(name));
    }
}

#[test]
fn a_cache_that_outlives_the_memory_is_found_beside_intel_mpi() {
    let outcome = clients::intel_mpi(2, "stale").run();
    let report = outcome.report();
    let found = report.finding("use-after-free");
    assert_eq!(found["severity"], "error", "{report:#?}");
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with("rank 1 (pid ") && message.contains("zeMemOpenIpcHandle"), "{message}");
    is_at(&outcome, "mpi_ring.py", found, "device.ze.zeMemOpenIpcHandle(");
}

#[test]
fn intel_shmem_is_right_and_clean() {
    for name in ["Intel SHMEM, 2 elements", "Intel SHMEM, 4 elements", "Intel SHMEM, sockets"] {
        let outcome = clean(name);
        if client(name).lacks().is_empty() {
            opens_are_closed(&outcome);
        }
    }
}

#[test]
fn memory_of_the_program_that_is_closed_too_early_is_found_beside_intel_shmem() {
    let outcome = clients::intel_shmem(2, "1").arg("closed-while-copied").run();
    let lacking = processor::lacks(processor::INTEL_SHMEM);
    if !lacking.is_empty() {
        processor::untried("Intel SHMEM, with a mistake", &lacking);
        assert_eq!(clients::dies_of_its_instructions(&outcome), None, "{}", outcome.stderr);
        return;
    }
    let report = outcome.report();
    assert_eq!(report.violations(), ["error closed-while-in-use"], "{}{report:#?}", outcome.stderr);
    let finding = report.finding("closed-while-in-use");
    is_at(&outcome, "shmem_exchange", finding, "app::Ze::check(ze.zeMemCloseIpcHandle(ze.context, opened)");
    assert_eq!(outcome.stdout.matches(": right\n").count(), 2, "{}", outcome.stdout);
}

#[test]
fn oneccl_is_right_and_clean() {
    // `scripts/clients` runs the other combinations of release and exchange, too.
    for name in ["oneCCL, sockets", "oneCCL 2022.2, pidfd"] {
        each_call_is_recorded(&clean(name));
    }
}

#[test]
fn a_collective_that_nobody_waits_for_is_found_beside_oneccl() {
    let (run, _folder) = clients::oneccl("pidfd", "forgetful");
    let outcome = run.env("ZE_SOFT_DELAY", "200ms").run();
    let report = outcome.report();
    let found: Vec<_> = report.findings().iter().filter(|it| it["rule"] == "freed-while-in-use").collect();
    assert!(!found.is_empty(), "{}{report:#?}", outcome.stderr);
    for finding in found {
        assert_eq!(finding["severity"], "error", "{report:#?}");
        is_at(&outcome, "ccl_collectives", finding, "sycl::free(all, rank.queue);");
    }
}

/// No urIPC call is responsible for them.
#[test]
fn a_program_that_uses_libumf_itself_is_judged() {
    each_call_is_recorded(&clean("libumf"));
    for (mistake, rule, text) in [
        ("destroyed-while-copied", "closed-while-in-use", "pool.reset();"),
        ("freed-while-copied", "freed-while-in-use", "check(umfFree(memory),"),
    ] {
        let outcome = clients::umf(mistake).run();
        let report = outcome.report();
        assert_eq!(report.violations(), [format!("error {rule}")], "{mistake}: {}{report:#?}", outcome.stderr);
        is_at(&outcome, "umf_memory", report.finding(rule), text);
        each_call_is_recorded(&outcome);
    }
}

/// It calls Level Zero itself, from the callbacks of a tracer.
#[test]
fn what_intels_profiler_watches_is_judged() {
    clean("intel-pti");
    let outcome = clients::pti("closed-twice").run();
    let report = outcome.report();
    assert_eq!(report.violations(), ["error double-close"], "{}{report:#?}", outcome.stderr);
    is_at(&outcome, "pti_views", report.finding("double-close"), "if (closes_twice) ze.zeMemCloseIpcHandle");
    assert_eq!(outcome.stdout.matches(": recorded\n").count(), 2, "{}", outcome.stdout);
}
