#!/usr/bin/env python3
"""Measures what a preloaded library costs a process that shares nothing: `scripts/bench start [--json FILE] [--turns N]`.

Two programs are started in turns, with and without urscope's library: `/bin/true`, and a SYCL program on the software device that copies and shares nothing
(tests/apps/bench_commands.cpp). Shown are the milliseconds from start to end and, for the SYCL program, those from its start to its first output, when it has allocated
memory and copied, and could share something; its resident memory there, and the peak of it until the end; minimum and median, and what the library adds. The library is built as
`scripts/packages/build` builds it. Last come the bytes of thread-local storage that each thread of such a process has for it.
"""

import argparse
import datetime
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import LIBRARY_AS_PACKAGED, ROOT, TARGET, library_as_packaged

RELEASE = "2026.2.0"
STARTS_OF_TRUE = 50  # In a turn: it takes a millisecond.
STARTS_OF_SYCL = 5
PT_TLS = 7


def prepared():
    """Builds everything; the path of the SYCL program."""
    subprocess.run([ROOT / "scripts/setup"], check=True)
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "urscope-device-loader"], cwd=ROOT, check=True)
    library_as_packaged()
    compiled = subprocess.run([ROOT / "scripts/compile-app", "bench_commands"], check=True, capture_output=True, text=True)
    return compiled.stdout.strip()


def started(command, environment):
    """The milliseconds from the start of a process to its end and to its first output, and the last two lines that it prints, as numbers; 0 for none."""
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_CLOSE, reader), (os.POSIX_SPAWN_CLOSE, writer)]
    begin = time.monotonic_ns()
    process = os.posix_spawn(command[0], command, environment, file_actions=actions)
    os.close(writer)
    output = os.read(reader, 4096)
    first = (time.monotonic_ns() - begin) / 1e6 if output else 0
    _, status = os.waitpid(process, 0)
    took = (time.monotonic_ns() - begin) / 1e6
    with open(reader) as pipe:
        lines = (output.decode() + pipe.read()).split()
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return took, first, *(map(float, lines[-2:]) if lines else (0, 0))


def thread_local_bytes(library):
    """The size of a library's thread-local storage: p_memsz of its program header PT_TLS (elf(5))."""
    data = library.read_bytes()
    (headers,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(headers, headers + size * count, size):
        if struct.unpack_from("<I", data, at)[0] == PT_TLS:
            return struct.unpack_from("<Q", data, at + 40)[0]
    return 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench start")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--turns", type=int, default=10, help="how often each side takes its turn (default: 10)")
    arguments = parser.parse_args()

    program = prepared()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("URSCOPE_", "UR_", "LD_", "ZE_"))}
    programs = ("/bin/true", "a SYCL program that shares nothing")
    figures = {(name, preloaded): [] for name in programs for preloaded in (False, True)}
    with tempfile.TemporaryDirectory(dir=TARGET) as folder:
        loader, traces = Path(folder, "loader"), Path(folder, "traces")
        loader.mkdir()
        traces.mkdir()
        (loader / "libze_loader.so.1").symlink_to(TARGET / "release/libze_loader.so")
        device = {"LD_LIBRARY_PATH": str(loader), "ONEAPI_DEVICE_SELECTOR": "level_zero:*", "SYCL_UR_USE_LEVEL_ZERO_V2": "1"}
        preload = {"LD_PRELOAD": str(LIBRARY_AS_PACKAGED), "URSCOPE_DIR": str(traces), "URSCOPE_QUIET": "1", "URSCOPE_FORMAT": "binary"}
        preload |= {"URSCOPE_VALIDATE": "off"}  # As `urscope run` records.
        for turn in range(arguments.turns):
            print(f"turn {turn + 1} of {arguments.turns}", file=sys.stderr)
            for name, preloaded in figures:
                alone = name == "/bin/true"
                command = ["/bin/true"] if alone else [program, "1", "100", "resident"]
                environment = {**clean, **({} if alone else device), **(preload if preloaded else {})}
                times = STARTS_OF_TRUE if alone else STARTS_OF_SYCL
                figures[name, preloaded] += [started(command, environment) for _ in range(times)]

    rows = []
    print(f"{'':<38} {'ms':^19}   {'to output, ms':^17}   {'resident KiB':^17}   {'peak KiB':^17}")
    print(f"{'':<38} {'min':>9} {'median':>9}" + f"   {'min':>8} {'median':>8}" * 3)
    for name in programs:
        sides = []
        for preloaded in (False, True):
            columns = zip(*figures[name, preloaded])
            sides.append([value for column in columns for value in (min(column), statistics.median(column))])
        sides.append([with_it - without for without, with_it in zip(*sides)])
        for side, values in zip((name, "  with urscope's library", "  added"), sides):
            pairs = zip((3, 0, 0), values[2::2], values[3::2])
            more = "".join(f"   {least:>8.{digits}f} {median:>8.{digits}f}" for digits, least, median in pairs) if sides[0][2] else ""
            print(f"{side:<38} {values[0]:>9.3f} {values[1]:>9.3f}{more}")
        amounts = ("ms", "ms_to_output", "resident_kib", "peak_kib")
        keys = [f"{which}_{amount}" for amount in amounts for which in ("minimum", "median")]
        rows.append({"program": name} | {of: dict(zip(keys, side)) for of, side in zip(("bare", "preloaded", "added"), sides)})
    tls = thread_local_bytes(LIBRARY_AS_PACKAGED)
    print(f"thread-local storage of {LIBRARY_AS_PACKAGED.name}: {tls} bytes a thread")
    if arguments.json:
        about = {"mode": "start", "date": datetime.date.today().isoformat(), "turns": arguments.turns}
        Path(arguments.json).write_text(json.dumps({**about, "rows": rows, "thread_local_bytes": tls}, indent=2) + "\n")


if __name__ == "__main__":
    main()
