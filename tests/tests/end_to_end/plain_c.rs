//! A program in plain C: two processes share all three kinds through the UR loader, with the adapter and with our
//! backend.

use urscope_tests::{Adapter, Outcome, Release, TestRun, record_fields};

use crate::complete_traces::{assert_counts, complete_traces};

const PRINTED: &str = "memory: all 42\nphysical memory: all 7\nmemory behind the event: all 43\n";

fn run(backend: &str) -> Outcome {
    TestRun::new("plain_c", Release::R2026_2, Adapter::V2).env("URSCOPE_BACKEND", backend).run()
}

#[test]
fn all_entry_points_are_recorded_and_clean() {
    for (backend, sizes) in [("adapter", ["120", "16", "64"]), ("level_zero", ["128"; 3])] {
        let outcome = run(backend);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, PRINTED), "{backend}: {}", outcome.stderr);
        let report = outcome.report();
        assert_eq!((report.verdict(), report.violations()), ("clean", vec![]), "{backend}: {report:#?}");
        let traces = complete_traces(&outcome);
        assert_eq!(traces.len(), 2, "{backend}");
        assert_counts(
            &outcome,
            &traces,
            [
                ("urIPCGetMemHandleExp", 1),
                ("urIPCPutMemHandleExp", 1),
                ("urIPCOpenMemHandleExp", 1),
                ("urIPCCloseMemHandleExp", 1),
                ("urIPCGetPhysMemHandleExp", 1),
                ("urIPCPutPhysMemHandleExp", 1),
                ("urIPCOpenPhysMemHandleExp", 1),
                ("urIPCClosePhysMemHandleExp", 1),
                ("urIPCGetEventHandleExp", 1),
                ("urIPCPutEventHandleExp", 1),
                ("urIPCOpenEventHandleExp", 1),
            ],
        );
        for (kind, size) in ["Mem", "PhysMem", "Event"].into_iter().zip(sizes) {
            let [get, open] = ["Get", "Open"].map(|verb| format!("urIPC{verb}{kind}HandleExp"));
            let values = |phase, call: &str, field| record_fields::sorted(&traces, phase, call, field);
            assert_eq!(values("E", &get, "fingerprint"), values("B", &open, "fingerprint"), "{backend}: {kind}");
            assert_eq!(values("E", &get, "data_size"), [size], "{backend}: {kind}");
        }
    }
}

#[test]
fn it_prints_the_same_without_urscope() {
    let bare = TestRun::new("plain_c", Release::R2026_2, Adapter::V2).untraced().run();
    assert_eq!((bare.code, bare.stdout.as_str()), (0, PRINTED), "{}", bare.stderr);
    assert!(bare.trace_files().is_empty());
}
