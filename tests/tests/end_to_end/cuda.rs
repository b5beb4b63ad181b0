//! Programs that share memory and events through the CUDA driver, on the software device: what is found in them, and
//! that they get the driver's answers.

use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, fs, process::Command};

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
            let traced = TestRun::of_cuda(program).arg(case).run();
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
    let source = folder.join("made.c");
    let made = folder.join("made");
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
        let traced = run().run();
        let bare = run().untraced().run();
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

/// A driver that is the software device of another version, as its header describes it.
const OTHER_DEVICE: &str = r#"
#include "ze_soft.h"
#include <unistd.h>
static void say(const char *text, size_t length) { (void)!write(1, text, length); }
static size_t unfinished_from(const void *address) {
  say(NAME " is asked\n", sizeof NAME + 9);
  return (void)address, SIZE_MAX;
}
static void observe_commands(ze_soft_current_call_t current_call, ze_soft_executed_t executed) {
  if (current_call && executed) say(NAME " is observed\n", sizeof NAME + 12);
}
const ze_soft_interface_t zeSoftInterface = {
  sizeof(ze_soft_interface_t) + MORE, ZE_SOFT_INTERFACE_VERSION + LATER, unfinished_from, observe_commands};
int cuInit(unsigned flags) { return (void)flags, 0; }
int cuIpcGetMemHandle(void *handle, unsigned long long memory) { return (void)handle, (void)memory, 0; }
int cuMemUnmap(unsigned long long memory, size_t size) { return (void)memory, (void)size, 0; }
"#;

/// The library in `folder`, which says under this name what a tool does: how much larger its structure is than that of
/// the header, in bytes, and by how much its version is later.
fn other_device(folder: &Path, name: &str, more: i32, later: i32) -> PathBuf {
    let headers = format!("-I{}", urscope_tests::repository().join("device/interface").display());
    let words = [format!("-DNAME=\"{name}\""), format!("-DMORE={more}"), format!("-DLATER={later}")];
    let [name, more, later] = words.each_ref().map(String::as_str);
    compiled(folder, OTHER_DEVICE, &["-shared", "-fPIC", &headers, name, more, later])
}

/// Gets a handle from each of the libraries that are its arguments, and unmaps memory by the last one.
const CALLS: &str = "
import ctypes, sys
for path in sys.argv[1:]:
    device = ctypes.CDLL(path)
    device.cuIpcGetMemHandle(ctypes.create_string_buffer(64), ctypes.c_uint64(4096))
device.cuMemUnmap(ctypes.c_uint64(1 << 30), ctypes.c_size_t(4096))
";

#[test]
fn a_device_of_another_version_is_asked_only_if_it_is_a_longer_one_of_the_same() {
    let folder = tempfile::tempdir().expect("no temporary folder");
    for (more, later, is_asked) in [(0, 0, true), (8, 0, true), (-8, 0, false), (0, 1, false), (0, -1, false)] {
        let device = other_device(folder.path(), "it", more, later);
        let run = TestRun::of_program(Release::R2026_2.python()).arg("-c").arg(CALLS).arg(&device).run();
        let observed = if is_asked { "it is observed\nit is asked\n" } else { "" };
        assert_eq!((run.code, &*run.stdout), (0, observed), "{more} {later}: {}", run.stderr);
        let said = format!("made has version {} of its interface for tools ({} bytes)", 1 + later, 24 + more);
        assert_eq!(run.stderr.matches(&said).count(), usize::from(!is_asked), "{more} {later}: {}", run.stderr);
    }
}

#[test]
fn each_device_of_a_process_is_asked() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("no temporary folder"));
    let program = TestRun::of_program(Release::R2026_2.python()).arg("-c").arg(CALLS);
    let program = program.arg(other_device(first.path(), "the first", 0, 0));
    let run = program.arg(other_device(second.path(), "the second", 0, 0)).run();
    // What is observed already is told again when the second one is found.
    let lines: BTreeSet<_> = run.stdout.lines().collect();
    let expected = ["the first is asked", "the first is observed", "the second is asked", "the second is observed"];
    assert_eq!(lines, expected.into(), "{}", run.stderr);
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
    let traced = run().run();
    let bare = run().untraced().run();
    assert_eq!(bare.stdout, "(nil) 1 (nil) 1 (nil) 1 (nil) 1 0 0\n");
    assert_eq!(traced.stdout, bare.stdout, "{}", traced.stderr);
    assert!(traced.traces().is_empty(), "nothing is written");
}
