//! Adapters that are not for Level Zero keep their own answers, whichever backend is chosen.

use urscope_tests::{Adapter, Release, TestRun, trace};

/// OpenCL on the CPU, behind the adapter library of 2026.1, which is loaded alone.
fn opencl() -> TestRun {
    let release = Release::R2026_1;
    TestRun::new("ur_support other", release, Adapter::V2)
        .env("UR_ADAPTERS_FORCE_LOAD", release.library("libur_adapter_opencl.so.0"))
        .env("OCL_ICD_FILENAMES", release.library("libintelocl.so"))
        .env("LD_LIBRARY_PATH", release.folder().join("lib"))
        .option("--no-check")
}

/// OpenCL shares nothing. 53 is a query that the adapter does not know, 44 a feature that it lacks.
const ANSWERS: &str = "memory: 0 no\nphysical memory: 53\nreusable events: 53\nevents: 53\n\
                       get memory: 44\nput memory: 44\nopen memory: 44\nclose memory: 44\n\
                       open physical memory: 44\nput physical memory: 44\n\
                       make an event: 44\nopen an event: 44\nput an event: 44\n";

#[test]
fn opencl_keeps_its_own_answers() {
    // Without urscope the program ends at the first function that the loader of this release lacks.
    let bare = opencl().option("--no-shim").run();
    let own = ANSWERS.split("open physical memory").next().unwrap();
    assert_eq!(bare.stdout, own, "{}", bare.stderr);
    for backend in ["adapter", "auto", "level_zero"] {
        let outcome = opencl().env("URSCOPE_BACKEND", backend).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, ANSWERS), "{backend}: {}", outcome.stderr);
        let traces = outcome.traces();
        // Four of the functions are the adapter's own; urscope exports the five that the loader of this release lacks.
        for call in ["urIPCGetMemHandleExp", "urIPCOpenPhysMemHandleExp", "urIPCOpenEventHandleExp"] {
            assert_eq!(trace::count(&traces, "E", call), 1, "{backend}, {call}: {}", outcome.stderr);
        }
    }
}
