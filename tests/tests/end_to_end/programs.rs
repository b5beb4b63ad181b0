//! How each program of `tests/apps` is run by a test that runs them all. A program without a line here is a failure.

use std::{collections::BTreeSet, fs, process::Command};

use urscope_tests::hunt::{Script, Stage};
use urscope_tests::{Adapter, Release, TestRun, apps, repository};

use Runs::{Cases, Kernels, Library, Listed, Once, With};
use Shares::{AllKinds, Memory};

/// What a program shares. The v1 adapter shares memory only. It records no graphs natively either: a program that needs
/// that stands with those that share all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shares {
    Memory,
    AllKinds,
}

/// How often a program is run, and with which arguments.
#[derive(Clone, Copy, Debug)]
enum Runs {
    /// Once, without an argument.
    Once,
    /// Once, with these.
    With(&'static [&'static str]),
    /// Once, with an engine for its kernels.
    Kernels,
    /// It is a library, which Python opens.
    Library,
    /// Once for each group of cases of `ur_cases.hpp`. (`misuse` needs an implementation that refuses it.)
    Cases,
    /// Once for each name that it prints when its argument is "list".
    Listed,
}

const GROUPS: [&str; 4] = ["alone", "of-two", "apart", "faults"];

#[rustfmt::skip]
const PROGRAMS: [(&str, Shares, Runs); 59] = [
    ("backend_cycles", AllKinds, With(&["10"])),
    ("becomes_another_program", Memory, With(&["execl"])),
    ("bench_commands", Memory, With(&["1", "100", "shared"])),
    ("bench_get_put", Memory, With(&["1", "100"])),
    ("by_dlsym", AllKinds, Once),
    ("clean", Memory, Once),
    ("clean_threads", Memory, With(&["100"])),
    ("comes_late", Memory, Once),
    ("ends_by_signal", Memory, With(&["15"])),
    ("free_while_open", Memory, Once),
    ("hostile_data", AllKinds, Once),
    ("ipc_refusals", AllKinds, Once),
    ("kernels exchange", Memory, Kernels),
    ("kernels in_use", Memory, Kernels),
    ("kernels native_graph", AllKinds, Kernels),
    ("killed_in_call", Memory, Once),
    ("late_put", Memory, Library),
    ("lending", Memory, Listed),
    ("long_run", Memory, With(&["100"])),
    ("marked_pairs", Memory, With(&["100"])),
    ("mistakes", Memory, Listed),
    ("museum_bifrost_138_sycl", Memory, Once),
    ("museum_ghex_220_sycl", Memory, Once),
    ("museum_mpich_7977_sycl", Memory, Once),
    ("museum_ms_swift_10204_sycl", Memory, Once),
    ("museum_mstar_66", Memory, Once),
    ("museum_numba_cuda_930", Memory, Once),
    ("museum_pytorch_191725", Memory, Once),
    ("native_device", Memory, Once),
    ("sharing", Memory, Listed),
    ("sharing other_backend", Memory, With(&["adapter"])),
    ("never_signalled", AllKinds, Once),
    ("plain_c", AllKinds, Once),
    ("kernels sub_devices", Memory, Kernels),
    ("two_devices", Memory, Listed),
    ("ur_arguments", AllKinds, Cases),
    ("ur_event", AllKinds, Cases),
    ("ur_memory", AllKinds, Cases),
    ("ur_mixed_backends", AllKinds, Once),
    ("ur_physical", AllKinds, Cases),
    ("ur_sharing", Memory, Listed),
    ("ur_support", AllKinds, Once),
    ("ur_violations", AllKinds, Listed),
    ("sycl_order", Memory, Listed),
    ("unmap_in_use", AllKinds, Once),
    // These have nothing to do with an adapter.
    ("museum_compute_runtime_974", AllKinds, Once),
    ("museum_dpctl_2331", AllKinds, Once),
    ("museum_mooncake_3546", AllKinds, Once),
    ("museum_mpich_6959", AllKinds, Once),
    ("museum_mpich_7302", AllKinds, Once),
    ("museum_mpich_7329", AllKinds, Once),
    ("museum_mpich_7977", AllKinds, Once),
    ("museum_oneccl_212", AllKinds, Once),
    ("museum_ucx_4431", AllKinds, Once),
    ("museum_oneccl_217", AllKinds, Once),
    ("bench_ze_get_put", AllKinds, With(&["1", "100"])),
    ("umf_memory", AllKinds, Listed),
    ("ze_order", AllKinds, Listed),
    ("ze_sharing", AllKinds, Listed),
];

/// Programs that a test of all programs leaves out, and why.
const LEFT_OUT: [(&str, &str); 40] = [
    ("bad_calls_cuda", "it takes a list of functions"),
    ("bad_calls_ur", "it takes a list of functions"),
    ("bad_calls_ze", "it takes a list of functions"),
    ("bench_cuda", "it has nothing to do with an adapter"),
    ("ccl_collectives", "a launcher starts it"),
    ("clean_ranks", "a launcher starts it"),
    ("cuda_clients", "it is a script that needs a GPU"),
    ("cuda_kernel", "it has nothing to do with an adapter"),
    ("cuda_order", "it has nothing to do with an adapter"),
    ("cuda_order_rounds", "it takes a file of rounds"),
    ("cuda_sharing", "it has nothing to do with an adapter"),
    ("cuda_sharing_by_proc_address", "it has nothing to do with an adapter"),
    ("cuda_sharing_by_runtime", "it has nothing to do with an adapter"),
    ("device_aspects", "it makes no IPC call"),
    ("interrupted", "the tests of interrupted calls run it"),
    ("killed_crowd", "the tests of violent ends run it"),
    ("mpi_ring", "a launcher starts it"),
    ("museum_bifrost_138", "it has nothing to do with an adapter"),
    ("museum_ghex_220", "it has nothing to do with an adapter"),
    ("museum_ms_swift_10204", "it has nothing to do with an adapter"),
    ("museum_nccl_842", "it has nothing to do with an adapter"),
    ("museum_pytorch_114534", "it has nothing to do with an adapter"),
    ("museum_pytorch_149187", "it has nothing to do with an adapter"),
    ("museum_vllm_46515", "it has nothing to do with an adapter"),
    ("no_ipc", "it is a script that makes no IPC call"),
    ("odd_process", "the tests of odd processes run it"),
    ("other_namespace", "it takes a loader to open, and urscope does not see its calls"),
    ("own_adapter", "it brings an adapter, and is compiled in several ways"),
    ("pti_views", "it takes a library to open"),
    ("scenario", "it is run with each of its scenarios"),
    ("stepped_calls", "the tests of interrupted calls run it"),
    ("shmem_exchange", "a launcher starts it"),
    ("sycl_order_rounds", "it takes a file of rounds"),
    ("system_calls", "the tests of odd processes run it"),
    ("two_terminals", "it is started twice"),
    ("violent_ends", "the tests of violent ends run it"),
    ("which_gpu", "it makes no IPC call"),
    ("ze_order_rounds", "it takes a file of rounds"),
    ("ze_table_driver", "it is the driver of ze_table_loader"),
    ("ze_table_loader", "it takes a driver to open"),
];

/// The programs that have something to do on an adapter.
pub(crate) fn on(adapter: Adapter) -> Vec<&'static str> {
    let runs_on = |shares: Shares| adapter == Adapter::V2 || shares == Memory;
    PROGRAMS.iter().filter(|(_, shares, _)| runs_on(*shares)).map(|(program, ..)| *program).collect()
}

/// Whether a program, or a scenario of `tests/apps/mistakes`, has something to do on an adapter.
pub(crate) fn has_something_on(program: &str, adapter: Adapter) -> bool {
    let stage = if adapter == Adapter::V2 { Stage::V2 } else { Stage::V1 };
    match program.strip_prefix("scenario ") {
        Some(name) => {
            let scripts = Script::all(&apps::source("mistakes"));
            scripts.iter().any(|script| script.name() == name && script.stages.contains(&stage))
        }
        None => on(adapter).iter().any(|known| program == *known || program.split(' ').next() == Some(known)),
    }
}

/// All ways to run a program, each with a name; or the one that is named behind the program.
pub(crate) fn ways(program: &str, adapter: Adapter) -> Vec<(String, TestRun)> {
    let known = PROGRAMS.iter().find(|(name, ..)| *name == program).map(|(.., runs)| *runs);
    let runs =
        known.unwrap_or_else(|| if program.contains(' ') { Once } else { panic!("{program} is not in the table") });
    let test_run = || TestRun::new(program, Release::R2026_2, adapter);
    let each = |arguments: &[&str]| -> Vec<(String, TestRun)> {
        let way = |argument: &&str| (format!("{program} {argument}"), prepared(program, test_run().arg(*argument)));
        arguments.iter().map(way).collect()
    };
    match runs {
        Once => vec![(program.to_owned(), test_run())],
        With(arguments) => {
            vec![(program.to_owned(), prepared(program, arguments.iter().fold(test_run(), |run, one| run.arg(*one))))]
        }
        Kernels => vec![(program.to_owned(), prepared(program, test_run().with_engine()))],
        Library => vec![(program.to_owned(), TestRun::of_library(program, Release::R2026_2, adapter))],
        Cases => each(&GROUPS),
        Listed => each(&listed(program).iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// What some programs need besides their arguments.
fn prepared(program: &str, test_run: TestRun) -> TestRun {
    match program {
        "kernels sub_devices" => test_run.env("ZE_SOFT_SUB_DEVICES", "2"),
        // Some of its violations take a second device.
        "ur_violations" | "two_devices" => test_run.env("ZE_SOFT_DEVICES", "2"),
        // It relies on the refusals of our backend.
        "backend_cycles" => test_run.env("URSCOPE_BACKEND", "level_zero"),
        _ => test_run,
    }
}

/// The names that a program prints.
fn listed(program: &str) -> Vec<String> {
    let output = Command::new(apps::executable(program, Release::R2026_2)).arg("list").output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
    let names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert!(output.status.success() && !names.is_empty(), "{program} lists nothing: {output:?}");
    names
}

#[test]
fn every_program_is_run_in_some_way() {
    let files = fs::read_dir(apps::source("")).expect("the folder of the programs can be listed");
    let programs: BTreeSet<String> = files
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "hpp"))
        .map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8").to_owned())
        .collect();
    let known = PROGRAMS.iter().map(|(program, ..)| *program).chain(LEFT_OUT.iter().map(|(program, _)| *program));
    let known = known.filter_map(|program| program.split(' ').next()).map(str::to_owned);
    assert_eq!(programs, known.collect(), "tests/apps holds other programs than the table");
    for (program, shares, _) in PROGRAMS {
        assert_eq!(on(Adapter::V1).contains(&program), shares == Memory, "{program}");
    }
}

/// What a program lists is run by this table; that is what it should be says another test, which names it.
#[test]
fn every_way_that_a_program_lists_is_named_by_a_test() {
    let folders = ["tests/tests/end_to_end", "tests/tests/end_to_end/conformance", "tests/src"]
        .map(|folder| repository().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder of tests"));
    let files = files
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|file| file.extension().is_some_and(|it| it == "rs"));
    let text: String = files.map(|file| fs::read_to_string(file).expect("a test")).collect();
    let of_several = PROGRAMS.iter().filter(|(program, _, runs)| program.contains(' ') || matches!(runs, Listed));
    let programs: BTreeSet<&str> = of_several.filter_map(|(program, ..)| program.split(' ').next()).collect();
    for program in programs {
        for way in listed(program) {
            assert!(text.contains(&format!("{way}\"")), "no test names {program} {way}");
        }
    }
}
