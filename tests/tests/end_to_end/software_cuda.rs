//! The software device as a CUDA driver answers as the driver does, and the programs that share through it are right in
//! their data.

use std::{fs, path::PathBuf, process::Command};

use urscope_tests::{Outcome, Release, TestRun};

/// A program that is linked with the driver.
const PROGRAM: &str = "cuda_sharing";

/// What each case prints besides that its processes are done: the answers to what the driver may refuse, and what was
/// read.
pub(crate) const CASES: [(&str, &[&str]); 83] = [
    ("memory-right", &[]),
    ("memory-of-second-context", &[]),
    ("memory-by-inner-address", &[]),
    ("memory-opened-twice", &[]),
    ("memory-opened-again", &[]),
    ("memory-with-pitch", &[]),
    ("memory-copied", &[]),
    ("memory-copied-in-rows", &[]),
    ("memory-copied-in-planes", &[]),
    ("memory-set-in-rows", &[]),
    ("memory-written", &[]),
    ("memory-managed", &["get -> CUDA_ERROR_INVALID_VALUE"]),
    ("memory-used-again", &[]),
    ("memory-consumer-ends-first", &[]),
    ("memory-goes-with-context", &[]),
    ("memory-goes-with-reset", &[]),
    ("event-right", &[]),
    ("event-before-copy", &[]),
    ("event-recorded-by-consumer", &[]),
    ("event-not-shared", &["get-event -> CUDA_ERROR_INVALID_HANDLE"]),
    ("physical-right", &[]),
    ("physical-fetched", &[]),
    ("physical-released-first", &[]),
    ("physical-released-while-mapped", &[]),
    ("physical-retained", &[]),
    ("descriptor-closed-at-once", &[]),
    ("descriptor-kept-with-memory", &[]),
    ("descriptor-kept-while-mapped", &[]),
    ("descriptor-number-used-again", &[]),
    ("pool-right", &[]),
    ("pool-default", &["get -> CUDA_ERROR_INVALID_VALUE"]),
    ("stale-handle", &["wrong bytes are read"]),
    ("stale-handle-refused", &["open -> CUDA_ERROR_NOT_PERMITTED"]),
    ("freed-while-open", &[]),
    ("mapping-leaked", &[]),
    ("mappings-leaked", &[]),
    ("closed-twice", &["close -> CUDA_ERROR_INVALID_VALUE"]),
    ("closed-inside", &["close-inner -> CUDA_ERROR_INVALID_VALUE"]),
    ("closed-by-free", &["free -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-close", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-close-in-rows", &["copy-rows -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-close-in-planes", &["copy-planes -> CUDA_ERROR_INVALID_VALUE"]),
    ("set-after-close-in-rows", &["set-rows -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-free", &["fill -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-reset", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-last-release", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("reset-while-open", &[]),
    ("opened-by-producer", &["open -> CUDA_ERROR_INVALID_CONTEXT"]),
    ("opened-after-free", &["open -> CUDA_ERROR_INVALID_VALUE"]),
    ("opened-after-end", &["open -> CUDA_ERROR_INVALID_HANDLE"]),
    ("producer-ends-first", &[]),
    ("producer-ends-first-and-opened-again", &["open -> CUDA_ERROR_INVALID_HANDLE"]),
    ("got-after-free", &["get -> CUDA_ERROR_INVALID_VALUE"]),
    ("got-of-mapping", &["get -> CUDA_ERROR_INVALID_VALUE"]),
    ("damaged-handle", &["open -> CUDA_ERROR_INVALID_VALUE"]),
    ("event-destroyed-while-open", &[]),
    ("event-left-open", &[]),
    ("released-twice", &["release -> CUDA_ERROR_INVALID_VALUE"]),
    ("used-after-unmap", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("physical-leaked", &[]),
    ("descriptors-leaked", &[]),
    ("descriptor-leaked", &[]),
    ("descriptors-never-closed", &[]),
    ("pool-freed-first", &[]),
    ("pool-destroyed-first", &["read -> CUDA_SUCCESS", "free-in-order -> CUDA_SUCCESS"]),
    ("pool-imported-twice", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("pool-freed-twice", &["free-in-order -> CUDA_ERROR_INVALID_VALUE"]),
    ("pool-used-after-free", &["read -> CUDA_ERROR_INVALID_VALUE"]),
    ("pool-imported-after-free", &["import-pointer -> CUDA_SUCCESS", "free-in-order -> CUDA_SUCCESS"]),
    ("physical-still-mapped", &[]),
    ("got-without-context", &["get-in-thread -> CUDA_ERROR_INVALID_CONTEXT"]),
    ("sent-without-get", &["get-in-thread -> CUDA_ERROR_INVALID_CONTEXT", "open -> CUDA_ERROR_INVALID_VALUE"]),
    ("unmapped-while-copied", &["synchronise -> CUDA_SUCCESS", "release -> CUDA_SUCCESS"]),
    ("physical-sent-anew", &[]),
    ("physical-replaced", &[]),
    ("acknowledged-early", &[]),
    ("acknowledged-late", &[]),
    ("told-before-wait", &[]),
    ("told-after-wait", &[]),
    ("waited-for-stream", &[]),
    ("waited-for-default-stream", &[]),
    ("waited-for-event", &[]),
    ("waited-for-earlier-event", &[]),
];

/// What it prints besides that its processes are done, both of which must be.
pub(crate) fn answers(outcome: &Outcome, case: &str) -> Vec<String> {
    let done = ["producer is done", "consumer is done"];
    for line in done {
        assert!(outcome.stdout.lines().any(|found| found == line), "{case}: {outcome:?}");
    }
    outcome.stdout.lines().filter(|line| !done.contains(line)).map(str::to_owned).collect()
}

#[test]
fn every_case_is_answered_as_by_the_driver() {
    let listed = TestRun::of_cuda(PROGRAM).arg("list").untraced().run();
    assert_eq!(listed.stdout.lines().collect::<Vec<_>>(), CASES.map(|(case, _)| case));
    urscope_tests::on_all_processors(CASES.into_iter(), |(case, expected)| {
        assert_eq!(answers(&TestRun::of_cuda(PROGRAM).arg(case).untraced().run(), case), expected, "{case}");
    });
}

#[test]
fn freed_memory_is_gone_where_no_address_is_used_again() {
    let run = |case| TestRun::of_cuda("cuda_sharing").arg(case).env("CUDA_SOFT_REUSE", "off").untraced().run();
    let refused = "open -> CUDA_ERROR_INVALID_VALUE";
    assert_eq!(answers(&run("stale-handle-refused"), "stale-handle-refused"), [refused]);
    assert_eq!(answers(&run("memory-used-again"), "memory-used-again"), [""; 0]);
}

/// As on an H200: the pool keeps the memory.
#[test]
fn a_pointer_of_a_pool_is_imported_after_its_memory_was_freed() {
    let script = r#"
import ctypes, os, socket
cuda = ctypes.CDLL("libcuda.so.1")
ours, theirs = socket.socketpair()
child = os.fork()
ref, size, wide = ctypes.byref, ctypes.c_size_t(1 << 20), ctypes.c_uint64
pool, memory, data, context = wide(), wide(), (ctypes.c_char * 64)(), ctypes.c_void_p()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ref(context), 0), cuda.cuCtxSetCurrent(context)
if child:
    descriptor = ctypes.c_int()
    cuda.cuMemPoolCreate(ref(pool), (ctypes.c_int * 24)(1, 1, 1, 0))
    cuda.cuMemAllocFromPoolAsync(ref(memory), size, pool, None)
    cuda.cuMemsetD8_v2(memory, 7, size)
    cuda.cuMemPoolExportToShareableHandle(ref(descriptor), pool, 1, wide(0))
    cuda.cuMemPoolExportPointer(data, memory)
    cuda.cuMemFreeAsync(memory, None)
    socket.send_fds(ours, [data.raw], [descriptor.value])
    os.waitpid(child, 0)
    print("destroyed", cuda.cuMemPoolDestroy(pool))
else:
    data, descriptors, *_ = socket.recv_fds(theirs, 64, 1)
    print("pool", cuda.cuMemPoolImportFromShareableHandle(ref(pool), ctypes.c_void_p(descriptors[0]), 1, wide(0)))
    byte = ctypes.c_ubyte()
    print("pointer", cuda.cuMemPoolImportPointer(ref(memory), pool, data), cuda.cuMemcpyDtoH_v2(ref(byte), memory, 1), byte.value)
    print("freed", cuda.cuMemFreeAsync(memory, None), flush=True)
"#;
    let outcome = TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(script).untraced().run();
    assert_eq!(outcome.stdout, "pool 0\npointer 0 0 7\nfreed 0\ndestroyed 0\n", "{}", outcome.stderr);
}

#[test]
fn streams_and_contexts_keep_their_order() {
    let run = |case: &str| TestRun::of_cuda("cuda_order").arg(case).untraced().run();
    let listed = run("list").stdout;
    assert_eq!(listed.lines().count(), 9);
    for case in listed.lines() {
        let outcome = run(case);
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{case}");
    }
}

/// Nothing that runs no kernels needs one, and who launches one is told.
#[test]
fn what_is_not_there_is_refused_by_name() {
    let script = r#"
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, count, address, status = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
find = lambda name, version: cuda.cuGetProcAddress_v2(
    name, ctypes.byref(address), version, ctypes.c_uint64(0), ctypes.byref(status))
print("before cuInit", cuda.cuDeviceGetCount(ctypes.byref(count)))
print("cuInit", cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
print("without a context", cuda.cuCtxSynchronize())
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
print("cuLaunchKernel", cuda.cuLaunchKernel(), cuda.cuLaunchKernel())
print("no such name", find(b"cuTelepathy", 13000), status.value)
print("a later version", find(b"cuMemCreate", 10010), status.value)
for version, symbol in (4010, "cuIpcOpenMemHandle"), (11000, "cuIpcOpenMemHandle_v2"):
    print(symbol, find(b"cuIpcOpenMemHandle", version), address.value == ctypes.cast(cuda[symbol], ctypes.c_void_p).value)
child = os.fork()
if child == 0:
    os._exit(cuda.cuCtxSynchronize())
print("in a forked child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;
    let python = Release::R2026_2.python();
    let outcome = TestRun::of_program(python).on_cuda().arg("-c").arg(script).untraced().run();
    let expected = "before cuInit 3\ncuInit 0 0 1\nwithout a context 201\ncuLaunchKernel 801 801\nno such name 0 1\n\
                    a later version 0 2\ncuIpcOpenMemHandle 0 True\ncuIpcOpenMemHandle_v2 0 True\nin a forked child 3\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    let refused = "urscope's stand-in for the CUDA driver: cuLaunchKernel is refused: it runs no kernels";
    assert_eq!(outcome.stderr.matches(refused).count(), 1, "{}", outcome.stderr);

    // libcudart does not start here: this program is for GPUs (docs/gpus.md).
    let outcome = TestRun::of_cuda("cuda_sharing_by_runtime").env("CUDART", "/nowhere").arg("list").untraced().run();
    assert_eq!((outcome.code, &*outcome.stderr), (77, "there is no /nowhere\n"));
}

#[test]
fn a_copy_at_addresses_that_there_cannot_be_is_refused() {
    let script = r#"
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(64)
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), size)
# CUDA_MEMCPY2D: x, y, kind of memory, host, device, array and pitch of each side, width and height.
rows = (ctypes.c_uint64 * 16)(0, 0, 2, 0, memory, 0, 64, 0, 0, 1, 0, 0, 0, 64, 8, 2)
print(cuda.cuMemcpyDtoH_v2(None, memory, size), cuda.cuMemcpyHtoD_v2(memory, None, size), cuda.cuMemcpy(None, None, size))
print(cuda.cuMemcpyHtoDAsync_v2(memory, None, size, None), cuda.cuMemcpy2D_v2(rows), cuda.cuMemcpyDtoH_v2(None, memory, 0))
rows[6], rows[9], rows[11], rows[13], rows[15] = 8, 4, memory, 1 << 63, 3
print(cuda.cuMemcpy2D_v2(rows))
"#;
    let run = TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(script).untraced().run();
    assert_eq!(run.stdout, "1 1 1\n1 1 0\n1\n", "{}", run.stderr);
}

#[test]
fn a_refused_call_is_logged_with_its_reason_under_its_name() {
    let script = r#"
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
print(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 60)), cuda.cuMemFree_v2(ctypes.c_uint64(1)))
print(cuda.cuMemPoolImportFromShareableHandle(ctypes.byref(memory), ctypes.c_void_p(0), 1, ctypes.c_uint64(0)))
print(cuda.cuMemAddressReserve(ctypes.byref(memory), ctypes.c_size_t(2 << 20), ctypes.c_size_t(0), ctypes.c_uint64(1), 0))
"#;
    let run = TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(script).env("ZE_SOFT_LOG", "1");
    let outcome = run.untraced().run();
    assert_eq!(outcome.stdout, "2 1\n1\n1\n", "{}", outcome.stderr);
    let lines: Vec<_> = outcome.stderr.lines().collect();
    let expected = [
        "ze_soft: cuMemAlloc_v2: out of memory (CUDA_ERROR_OUT_OF_MEMORY)",
        "ze_soft: cuMemFree_v2: invalid argument (CUDA_ERROR_INVALID_VALUE)",
        "ze_soft: cuMemPoolImportFromShareableHandle: invalid argument (CUDA_ERROR_INVALID_VALUE)",
        "ze_soft: cuMemAddressReserve: invalid argument (CUDA_ERROR_INVALID_VALUE)",
    ];
    assert_eq!(lines, expected);

    let stderr = TestRun::of_cuda(PROGRAM).arg("opened-after-free").env("ZE_SOFT_LOG", "1").untraced().run().stderr;
    let reason = "cuIpcOpenMemHandle_v2: its producer has freed it or put the handle (CUDA_ERROR_INVALID_VALUE)";
    assert_eq!(stderr.trim_end(), format!("ze_soft: {reason}"));
}

/// The environment with a runtime and the headers of a newer release.
fn cuda_runtime() -> PathBuf {
    const RELEASE: &str = "cuda-runtime-13.5.37";
    let root = urscope_tests::repository();
    let setup = Command::new(root.join("scripts/setup")).args(["--runtime", RELEASE]).output().unwrap();
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    let python = fs::read_dir(root.join("target/runtime").join(RELEASE).join("lib")).unwrap().next().unwrap().unwrap();
    python.path().join("site-packages/nvidia/cu13")
}

/// NVIDIA's own libcudart.
#[test]
fn what_was_loaded_and_that_the_cuda_runtime_does_not_start_is_said() {
    let library = cuda_runtime().join("lib/libcudart.so.13");
    let script = "
import ctypes, sys, time
if sys.argv[1:]:
    runtime = ctypes.CDLL(sys.argv[1])
    print(runtime.cudaFree(None))
else:
    print(ctypes.CDLL('libcuda.so.1').cuInit(0))
time.sleep(1)
";
    let run = || TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(script);
    let told = "urscope's stand-in for the CUDA driver: cuGetExportTable is refused: its tables are not documented, and the CUDA runtime \
                (libcudart) does not start without them";
    for (outcome, answer, loaded, is_told) in [
        (run().run(), "0\n", "the software device as a CUDA driver", false),
        (
            run().arg(library).run(),
            "500\n",
            "the software device as a CUDA driver, on which the CUDA runtime (libcudart) does not start",
            true,
        ),
    ] {
        let report = outcome.report();
        let reason = report.reason().unwrap_or_default();
        assert!(reason.contains(&format!(" loaded {loaded}, and no call shared anything")), "{reason}");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, answer), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().any(|line| line == told), is_told, "{}", outcome.stderr);
    }
}

/// Of the headers of a newer release.
#[test]
fn what_is_declared_and_exported_is_what_the_headers_have() {
    let root = urscope_tests::repository();
    let headers = cuda_runtime().join("include");
    let [api, types] = ["cuda.h", "cudaTypedefs.h"].map(|name| fs::read_to_string(headers.join(name)).unwrap());
    let is_name = |symbol: &str| api.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).any(|word| word == symbol);
    let mut rows = 0;
    let mut check = |name: &str, symbol: &str, since: &str| {
        assert!(types.contains(&format!("PFN_{name}_v{since})")), "no {name} of CUDA {since}");
        assert!(is_name(symbol), "no {symbol}");
        rows += 1;
    };
    for line in fs::read_to_string(root.join("tests/apps/cuda_driver.hpp")).unwrap().lines() {
        let words: Vec<_> = line.trim_start().splitn(4, ", ").collect();
        if let [name, symbol, since, _] = words[..]
            && let Some(name) = name.strip_prefix("F(")
        {
            check(name, symbol, since);
        }
    }
    for file in fs::read_dir(root.join("device/cuda/src")).unwrap() {
        for line in fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            // 3020 "cuMemAlloc" cuMemAlloc_v2(
            let words: Vec<_> = line.split_whitespace().collect();
            if let [since, name, symbol, ..] = words[..]
                && let Some(name) = name.strip_prefix("\"cu").and_then(|name| name.strip_suffix('"'))
            {
                check(&format!("cu{name}"), symbol.split('(').next().unwrap(), since);
            }
        }
    }
    assert!(rows > 200, "{rows} rows");
}
