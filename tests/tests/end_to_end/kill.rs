//! The trace of a killed process holds all finished calls and the one that it was in.

use urscope_tests::{Adapter, Release, TestRun, Trace, perfetto, run};

use crate::on_both_adapters;

on_both_adapters! {
    /// The consumer dies between two calls, after all was well; its fixed twin exits there.
    fn a_death_is_named_with_its_signal_and_is_not_clean(adapter) {
        for backend in ["adapter", "level_zero"] {
            let run = |how: &str| {
                let run = TestRun::new("ends_by_signal", Release::R2026_2, adapter).arg(how);
                run.env("URSCOPE_BACKEND", backend).run()
            };
            for (number, name) in [("11", "SIGSEGV"), ("6", "SIGABRT"), ("15", "SIGTERM")] {
                let outcome = run(number);
                let report = outcome.report();
                assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{name}: {report:#?}");
                let said = report.reason().expect("a reason");
                assert!(said.starts_with("ends_by_signal (pid ") && said.ends_with(&format!(") died of {name}")), "{said}");
                let signals: Vec<_> = report.processes().iter().filter_map(|process| process["signal"].as_str()).collect();
                assert_eq!(signals, [name]);
            }
            let outcome = run("0");
            assert_eq!((outcome.code, outcome.report().verdict()), (0, "clean"), "{:#?}", outcome.report());
        }
    }
}

on_both_adapters! {
    fn is_readable_after_a_kill_inside_a_call(adapter) {
        let outcome = TestRun::new("killed_in_call", Release::R2026_2, adapter).run();
        assert!(outcome.stdout.contains("consumer was killed"), "{}{}", outcome.stdout, outcome.stderr);
        let traces = outcome.traces();
        let (killed, parent): (Vec<&Trace>, Vec<&Trace>) = traces.iter().partition(|trace| !trace.closed);
        assert_eq!((killed.len(), parent.len()), (1, 1), "one process was killed, one ended");
        let killed = killed[0];
        killed.assert_whole();

        // The program finished ten of each before it was killed.
        assert!(outcome.stdout.contains("consumer finished open 10, close 10"), "{}", outcome.stdout);
        assert_eq!(killed.count("E", "urIPCOpenMemHandleExp"), 10);
        assert_eq!(killed.count("E", "urIPCCloseMemHandleExp"), 10);
        assert_eq!(killed.unfinished(), ["urIPCOpenMemHandleExp"]);

        let query = "select name from slice where dur = -1";
        let opinion = perfetto::opinion(&killed.path, &[query]);
        opinion.assert_ok();
        assert_eq!(opinion.rows(0)[0]["name"], "urIPCOpenMemHandleExp");
        assert_eq!(opinion.count("unfinished"), 1);

        // Being killed is no violation, but what the process would have done is not known.
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{report:#?}");
        assert_eq!(report.violations(), [""; 0], "{report:#?}");
        let said = format!("killed_in_call (pid {}) died of SIGKILL inside call 33 (urIPCOpenMemHandleExp)", killed.pid());
        assert_eq!(report.reason(), Some(&*said));
        let process = report.process(killed.pid());
        assert_eq!((&process["ended"], &process["signal"]), (&"killed".into(), &"SIGKILL".into()));
        assert_eq!(report.process(parent[0].pid())["ended"], "exited");

        // The files that were left give the same verdict.
        let folder = outcome.trace_folder();
        let check = |options: &[&str]| {
            let folder = folder.to_str().expect("a path in UTF-8");
            run::urscope(&[&["check", folder], options].concat())
        };
        let checked = check(&[]);
        assert_eq!(checked.code, 2, "{}{}", checked.stdout, checked.stderr);
        assert!(checked.stdout.starts_with(&format!("urscope: clean, but {said} (2 processes, ")), "{}", checked.stdout);
        let expected = check(&["--expect-signal", "KILL"]);
        assert!(expected.code == 0 && expected.stdout.starts_with("urscope: clean (2 "), "{}", expected.stdout);
    }
}

/// A killed producer could not put its handle, so that is no leak.
#[test]
fn a_killed_producer_is_not_accused() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let run = TestRun::new("scenario killed_producer", Release::R2026_2, adapter);
        let outcome = run.option("--expect-signal").option("SIGKILL").run();
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (0, "clean"), "{report:#?}");
        let ended = |how: &str| report.processes().iter().filter(|process| process["ended"] == how).count();
        assert_eq!((ended("killed"), ended("exited")), (1, 1), "{report:#?}");
        assert!(outcome.stdout.ends_with("consumer: compare m seed 14\nconsumer: close m\n"), "{}", outcome.stdout);
        perfetto::opinions(&outcome.trace_files(), &[]).iter().for_each(perfetto::Opinion::assert_ok);
    }
}

/// A server keeps the memory of clients that are killed, or closes it when a client is gone. Each client has made its
/// last call before its memory is opened.
const SERVER: &str = r#"
import ctypes, os, signal, socket, sys, time
mode, size = sys.argv[1], int(sys.argv[2]) << 20

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]

def start():
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
    return cuda

def client(line):
    cuda, memory, handle = start(), ctypes.c_uint64(), Handle()
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)), cuda.cuIpcGetMemHandle(ctypes.byref(handle), memory)
    line.send(bytes(handle)), line.recv(1)
    if mode != "exits": time.sleep(60)
    os._exit(0)

clients = []
for _ in range(3):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0: client(theirs)
    clients.append((pid, ours))
cuda = start()
for pid, line in clients:
    memory, handle = ctypes.c_uint64(), Handle.from_buffer_copy(line.recv(64))
    assert cuda.cuIpcOpenMemHandle_v2(ctypes.byref(memory), handle, 1) == 0
    if mode == "exits": line.send(b"!")
    else: os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if mode == "mended": cuda.cuIpcCloseMemHandle(memory)
    time.sleep(0.2)
"#;

#[test]
fn who_keeps_the_memory_of_killed_clients_is_told_how_much_and_for_how_long() {
    let run = |mode: &str, size: &str| {
        let python = TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(SERVER);
        python.arg(mode).arg(size).run().report()
    };
    for (mode, end) in [("wrong", "which was killed"), ("exits", "which exited")] {
        let report = run(mode, "32");
        let found = report.violations();
        assert!(found.contains(&"warning exporter-gone".into()), "{mode}: {report:#?}");
        let message = report.finding("exporter-gone")["message"].as_str().unwrap().to_owned();
        for part in ["keeps 96 MiB (100,663,296 bytes) of 3 ended processes open, in 3 mappings, for up to ", end] {
            assert!(message.contains(part), "{mode}: {message}");
        }
    }
    assert!(run("wrong", "2").violations().contains(&"note exporter-gone".into()));
    assert_eq!(run("mended", "32").violations(), [""; 0]);
}
