//! Every call is seen once, whichever way the program reaches its adapter.

use urscope_tests::{Adapter, Outcome, Release, TestRun, apps, trace};

fn assert_seen_once(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let traces = outcome.traces();
    for call in ["urIPCGetMemHandleExp", "urIPCPutMemHandleExp", "urIPCOpenMemHandleExp", "urIPCCloseMemHandleExp"] {
        assert_eq!(trace::count(&traces, "B", call), 1, "{call}: {}", outcome.stderr);
    }
    assert_eq!(outcome.report().verdict(), "clean");
}

fn with_one_adapter(release: Release, adapter: Adapter) {
    let library = release.library(match adapter {
        Adapter::V1 => "libur_adapter_level_zero.so.0",
        Adapter::V2 => "libur_adapter_level_zero_v2.so.0",
    });
    assert_seen_once(&TestRun::new("clean", release, adapter).env("UR_ADAPTERS_FORCE_LOAD", library).run());
}

#[test]
fn with_only_the_v1_adapter_loaded() {
    with_one_adapter(Release::R2026_2, Adapter::V1);
    with_one_adapter(Release::R2026_0, Adapter::V1);
}

#[test]
fn with_only_the_v2_adapter_loaded() {
    with_one_adapter(Release::R2026_2, Adapter::V2);
    with_one_adapter(Release::R2026_0, Adapter::V2);
}

#[test]
fn with_the_adapter_that_the_device_chooses() {
    let program = apps::executable("clean", Release::R2026_2);
    assert_seen_once(&TestRun::of_program(program).run());
}

#[test]
fn with_a_loader_that_the_program_links_itself() {
    for release in [Release::R2026_2, Release::R2026_1] {
        for adapter in [Adapter::V1, Adapter::V2] {
            assert_seen_once(&TestRun::new("ur_sharing direct", release, adapter).run());
        }
    }
}

/// Here the loader is not in the global scope, so libsycl's calls go through our symbols.
#[test]
fn with_a_runtime_that_is_opened_for_a_library_alone() {
    for release in [Release::R2026_2, Release::R2026_1, Release::R2026_0] {
        let outcome = TestRun::of_library("late_put", release, Adapter::V2).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let traces = outcome.traces();
        for call in ["urIPCGetMemHandleExp", "urIPCPutMemHandleExp", "urUSMDeviceAlloc", "urUSMFree"] {
            assert_eq!(trace::count(&traces, "E", call), 1, "{call}: {}", outcome.stderr);
        }
    }
}

/// A loader that a preloaded library does not reach: nothing can be recorded, and the verdict says why.
#[test]
fn a_loader_that_is_out_of_reach_is_reported() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("other_namespace");
    apps::compile_with_headers("other_namespace.cpp", &program, &[]);

    let run = |way: &str| {
        let test_run = || {
            let loader = Release::R2026_2.library("libur_loader.so.0");
            TestRun::of_program(&program).adapter(Adapter::V2).arg(way).arg(loader)
        };
        let bare = test_run().untraced().run();
        let traced = test_run().run();
        assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{way}: {}{}", bare.stderr, traced.stderr);
        traced
    };
    assert_eq!(run("plain").report().verdict(), "clean");
    for (way, reason) in [("deepbind", "RTLD_DEEPBIND"), ("namespace", "a namespace of its own (dlmopen)")] {
        let outcome = run(way);
        assert_eq!(outcome.report().verdict(), "not-judged", "{way}");
        let said = outcome.report().reason().map(str::to_owned).unwrap_or_default();
        assert!(said.contains("libur_adapter_level_zero_v2.so.0 were not seen") && said.contains(reason), "{said}");
        let [trace] = &outcome.traces()[..] else { panic!("{way}: one trace is expected") };
        let notes = trace.records.iter().filter(|record| record["name"] == "note").count();
        assert_eq!(notes, 1, "{way}: {:?}", trace.records);
    }
}

/// The adapter means its own functions when it calls them; the dynamic loader would have it call urscope's. With
/// `-Bsymbolic` it calls its own in any case.
#[test]
fn an_adapter_with_visible_symbols_calls_its_own_functions() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = folder.path().join("loader");
    apps::compile_with_headers("own_adapter.cpp", &program, &["-O2", "-DLOADER"]);
    for flags in
        [&["-DLIBRARY", "-shared", "-fPIC", "-O2"][..], &["-DLIBRARY", "-shared", "-fPIC", "-O2", "-Wl,-Bsymbolic"]]
    {
        let adapter = folder.path().join("libown.so");
        apps::compile_with_headers("own_adapter.cpp", &adapter, flags);
        let test_run = || TestRun::of_program(&program).arg(&adapter).arg("once");
        let bare = test_run().untraced().run();
        let traced = test_run().run();
        assert_eq!((bare.code, &bare.stdout), (0, &traced.stdout), "{flags:?}: {}{}", bare.stderr, traced.stderr);
        assert!(bare.stdout.contains("open: 0\nclose: 0\n") && bare.stdout.ends_with("done: 7\n"), "{}", bare.stdout);
        let traces = traced.traces();
        let report = traced.report();
        let own = apps::CALLS_OF_OWN_ADAPTER.map(|call| (call, 1));
        for (call, count) in own.into_iter().chain([("urDeviceGetInfo", 0)]) {
            assert_eq!(trace::count(&traces, "B", call), count, "{flags:?}, {call}: {}", traced.stderr);
        }
        assert_eq!(report.verdict(), "clean", "{flags:?}: {report:#?}");
    }
}
