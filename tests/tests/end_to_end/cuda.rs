//! Programs that share memory and events through the CUDA driver, on the software device: what is found in them, and that
//! they get the driver's answers.

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

use urscope_tests::{Release, TestRun, record_fields, trace};

use crate::software_cuda::{CASES, answers};

/// The programs: one is linked with the driver, the other one asks it for its functions.
const PROGRAMS: [&str; 2] = ["cuda_sharing", "cuda_sharing_by_proc_address"];

/// What is right or wrong, and what is found: a line for each case.
const FOUND: &str = include_str!("../../apps/cuda_sharing.txt");

pub(crate) fn cases() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> + Clone {
    let case = |line: &'static str| {
        let (case, found) = line.split_once(':').expect("a case and what is found in it");
        let (ways, case) = case.split_once(' ').unwrap_or(("", case));
        assert!(["all", "driver", "software"].contains(&ways), "{line}: a case begins with its ways into the driver");
        (case, found.split(',').map(str::trim).filter(|found| !found.is_empty()).collect())
    };
    FOUND.lines().filter(|line| !line.starts_with('#')).map(case)
}

#[test]
fn each_mistake_is_found_and_nothing_else_by_every_way() {
    let listed = TestRun::of_cuda(PROGRAMS[0]).arg("list").untraced().run();
    assert_eq!(listed.stdout.lines().collect::<Vec<_>>(), cases().map(|(case, _)| case).collect::<Vec<_>>());
    for program in PROGRAMS {
        urscope_tests::on_all_processors(cases(), |(case, expected)| {
            // Two commands meet only if they take some time.
            let delay = if case == "acknowledged-early" { "50ms" } else { "0" };
            let traced = TestRun::of_cuda(program).arg(case).env("ZE_SOFT_DELAY", delay).run();
            let mut found = traced.report().violations();
            // The consumer may not have ended when the producer destroys the event.
            found.retain(|it| case != "event-left-open" || it != "note freed-while-open");
            assert_eq!(found, expected, "{program} {case}: {}", traced.stderr);
            traced.traces().iter().for_each(record_fields::assert_as_declared);
            let answered = CASES.iter().find(|(known, _)| *known == case).expect("a case of the device");
            assert_eq!(answers(&traced, case), answered.1, "{program} {case}");
        });
    }
}

/// The memory of both generations is named, at the lines of the program.
#[test]
fn a_handle_of_memory_that_was_allocated_again_names_both() {
    let outcome = TestRun::of_cuda(PROGRAMS[0]).arg("stale-handle").run();
    let report = outcome.report();
    let message = report.finding("stale-handle")["message"].as_str().unwrap().to_owned();
    let parts = [
        "which the driver accepted",
        "exported in call",
        "freed in call",
        "now belongs to other memory, allocated in call",
    ];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

/// The driver's handle is that of a whole block, in which an allocator may have put several objects.
#[test]
fn a_leaked_mapping_of_a_block_is_said_to_hold_all_of_it() {
    let report = TestRun::of_cuda(PROGRAMS[0]).arg("mapping-leaked").run().report();
    let message = report.finding("leaked-mapping")["message"].as_str().unwrap().to_owned();
    for part in ["of 2 MiB", "which names the whole allocation and was got 2 times, perhaps for several parts of it"] {
        assert!(message.contains(part), "{message}");
    }
}

fn compiled(folder: &Path, text: &str, flags: &[&str]) -> PathBuf {
    let (source, made) = (folder.join("made.c"), folder.join("made"));
    fs::write(&source, text).expect("a file can be written");
    let status = Command::new("gcc").args(flags).arg(&source).arg("-o").arg(&made).status();
    assert!(status.expect("gcc cannot be started").success());
    made
}

/// A library in front of the driver that wraps `dlsym` and functions of the driver, as those do that limit memory.
const NEIGHBOUR: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
typedef struct { char bytes[64]; } Handle;
static int allocated, got, opened;
static __thread int inside;
static void *of_driver(const char *name) {
  inside++;
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), name);
  return inside--, found;
}
int cuMemAlloc_v2(unsigned long long *memory, size_t size) {
  int (*real)(unsigned long long *, size_t) = of_driver("cuMemAlloc_v2");
  return allocated++, real(memory, size);
}
int cuIpcGetMemHandle(Handle *handle, unsigned long long memory) {
  int (*real)(Handle *, unsigned long long) = of_driver("cuIpcGetMemHandle");
  return got++, real(handle, memory);
}
int cuIpcOpenMemHandle_v2(unsigned long long *memory, Handle handle, unsigned flags) {
  int (*real)(unsigned long long *, Handle, unsigned) = of_driver("cuIpcOpenMemHandle_v2");
  return opened++, real(memory, handle, flags);
}
static void *own(const char *name) {
  if (strncmp(name, "cuMemAlloc", 11) == 0 || strcmp(name, "cuMemAlloc_v2") == 0) return cuMemAlloc_v2;
  if (strcmp(name, "cuIpcGetMemHandle") == 0) return cuIpcGetMemHandle;
  return NULL;
}
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status) {
  int (*real)(const char *, void **, int, unsigned long long, int *) = of_driver("cuGetProcAddress_v2");
  int result = real(name, function, version, flags, status);
  if (result == 0 && own(name)) *function = own(name);
  return result;
}
void *dlsym(void *handle, const char *name) {
  static void *(*real)(void *, const char *);
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!inside && name && strcmp(name, "cuGetProcAddress_v2") == 0) return cuGetProcAddress_v2;
  return real(handle, name);
}
__attribute__((destructor)) static void end(void) {
  if (allocated + got + opened > 0) dprintf(1, "%d allocations, %d gets, %d opens\n", allocated, got, opened);
}
"#;

#[test]
fn a_library_in_front_of_the_driver_goes_on_and_a_call_is_recorded_once() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    let neighbour = compiled(folder.path(), NEIGHBOUR, &["-shared", "-fPIC"]);
    for program in PROGRAMS {
        let run = || TestRun::of_cuda(program).arg("memory-right").env("LD_PRELOAD", &neighbour);
        let (traced, bare) = (run().run(), run().untraced().run());
        let lines = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!((traced.code, lines(&traced.stdout)), (0, lines(&bare.stdout)), "{program}: {}", traced.stderr);
        assert_eq!(traced.report().verdict(), "clean", "{program}: {}", traced.stderr);
        for function in
            ["cuMemAlloc_v2", "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuMemFree_v2"]
        {
            assert_eq!(trace::count(&traced.traces(), "B", function), 1, "{program}: {function}");
        }
    }
}

/// The version that is asked for decides which function it is, and the getter hands out itself.
#[test]
fn the_version_that_is_asked_for_is_the_function() {
    let script = r#"
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]
def asked(getter, name, version):
    address = ctypes.c_void_p()
    assert getter(name, ctypes.byref(address), version, ctypes.c_ulonglong(0), None) == 0
    return address.value
first = cuda.cuGetProcAddress_v2
again = asked(first, b"cuGetProcAddress", 12000)
getter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_ulonglong, ctypes.c_void_p)(again)
context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context))
for version in (4010, 11000):
    pointer = asked(getter, b"cuIpcOpenMemHandle", version)
    opens = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Handle, ctypes.c_uint)(pointer)
    print(opens(ctypes.byref(memory), Handle((ctypes.c_ubyte * 64)(*range(64))), 1))
"#;
    let outcome = TestRun::of_program(Release::R2026_2.python()).on_cuda().arg("-c").arg(script).run();
    assert_eq!(outcome.stdout, "0 0 0\n1\n1\n", "{}", outcome.stderr);
    for function in ["cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"] {
        assert_eq!(trace::count(&outcome.traces(), "B", function), 1, "{function}: {}", outcome.stderr);
    }
}

/// What is exported is not found where there is no driver, but by a reference of the program itself.
#[test]
fn a_program_without_the_driver_finds_none() {
    let program = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
__attribute__((weak)) int cuInit(unsigned);
int main(void) {
  const char *names[] = {"cuInit", "cuMemFree_v2", "cuGetProcAddress", "cuIpcGetMemHandle"};
  for (int at = 0; at < 4; at++) {
    void *found = dlsym(RTLD_DEFAULT, names[at]);
    printf("%p %d ", found, dlerror() != NULL);
  }
  printf("%d %d\n", cuInit != NULL, dlopen("libcuda.so.1", RTLD_NOW) != NULL);
}
"#;
    let folder = tempfile::tempdir().expect("no temporary folder");
    let program = compiled(folder.path(), program, &[]);
    let run = || TestRun::of_program(&program);
    let (traced, bare) = (run().run(), run().untraced().run());
    assert_eq!(bare.stdout, "(nil) 1 (nil) 1 (nil) 1 (nil) 1 0 0\n");
    assert_eq!(traced.stdout, bare.stdout, "{}", traced.stderr);
    assert!(traced.traces().is_empty(), "nothing is written");
}
