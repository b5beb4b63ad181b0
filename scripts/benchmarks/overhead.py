#!/usr/bin/env python3
"""Measures what recording adds to a call on the real runtime: `scripts/bench overhead|threads|commands [--json FILE] [--turns N]`.

The program tests/apps/bench_get_put.cpp gets and puts the handle of one allocation in a loop: two calls that the adapter serves from its
cache, so there are no cheaper ones. Each side of the comparison is a run of its own. The sides take turns, so that a slow minute of the machine
affects all of them. Of all rounds of a side, the minimum, the lower quartile and the median are shown.

The library of urscope is built as `scripts/packages/build` builds it (profile `compact`), all else in the release profile.

`overhead` compares, on each adapter, both forms of the trace, with and without validation, with the runtime's own layers and with other
tools (scripts/benchmarks/peers.py); and with two ways of recording that cannot be put into the runtime, and are measured alone. It does so with
tests/apps/bench_ze_get_put.cpp, too, which makes both calls by Level Zero, as communication libraries do. The binary form is also measured
with the traces in memory.
`threads` compares 1, 2, 8 and 16 threads. There, one side more runs without urscope and computes for about 100 ns behind each call. The
threads wait for a lock of the runtime, so time that each of them spends alone is not simply added to that of a pair: this side shows how
much of it is.
`commands` does the same with a program that copies 64 bytes again and again (tests/apps/bench_commands.cpp): before and after the process has
shared memory, because copies are recorded only then; and with one that launches a kernel instead.
`--json` writes the figures to a file.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import LIBRARY_AS_PACKAGED, ROOT, TARGET, library_as_packaged
from peers import Failed, Peers, last_line

RELEASE = "2026.2.0"
RUNTIME = ROOT / "target/runtime" / RELEASE
# What runs the kernels is in another release's environment, as for the tests (tests/src/run.rs).
ENGINE_RELEASE = "2026.1.2"
ENGINE = ROOT / "target/runtime" / ENGINE_RELEASE / "lib/libintelocl.so"
ROUNDS = 4
PAIRS = 50000
COPIES = 20000
# Multiplications of about 0.7 ns behind each call.
LOOP = 140
THREADS = (1, 2, 8, 16)
ADAPTERS = ("v1", "v2")
LEVEL_ZERO = "Level Zero"
# A file system in memory.
IN_MEMORY = Path("/dev/shm")
CALLS_OF_A_PAIR = 2

# Of urscope: the environment of a traced run.
TRACED = {
    f"{form} form, {kind}": {"URSCOPE_FORMAT": form.lower(), "URSCOPE_VALIDATE": switch}
    for form in ("Chrome", "binary")
    for kind, switch in (("traced", "off"), ("validated", "on"))
}
BARE = "bare"
LAUNCHES = "launches, "


def prepared():
    """Builds everything; the paths of the command and of the three programs."""
    subprocess.run([ROOT / "scripts/setup"], check=True)
    subprocess.run([ROOT / "scripts/setup", "--runtime", ENGINE_RELEASE], check=True)
    build = ["cargo", "build", "--quiet", "--release", "-p", "urscope-command", "-p", "urscope-preload", "-p", "urscope-device-loader"]
    subprocess.run([*build, "--lib", "--bin", "urscope", "--example", "span-cost"], cwd=ROOT, check=True)
    library_as_packaged()
    compiled = [[ROOT / "scripts/compile-app", name] for name in ("bench_get_put", "bench_ze_get_put", "bench_commands")]
    programs = [subprocess.run(one, check=True, capture_output=True, text=True).stdout.strip() for one in compiled]
    return TARGET / "release/urscope", *programs


def file_system(folder):
    """The name of the file system that a folder is in."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    inside = [(len(point), kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(inside)[1]


def adapter_choice(adapter):
    number = str(ADAPTERS.index(adapter) if adapter in ADAPTERS else 1)
    return {"SYCL_UR_USE_LEVEL_ZERO_V2": number, "UR_LOADER_USE_LEVEL_ZERO_V2": number}


class Bench:
    """What all runs share."""

    def __init__(self):
        self.urscope, self.pairs, self.ze_pairs, self.copies = prepared()
        self.peers = Peers(self.run, RUNTIME, CALLS_OF_A_PAIR * ROUNDS * PAIRS)
        self.rounds = {}
        self.failed = {}

    def run(self, options, environment, before=(), program=None, room=TARGET):
        """The nanoseconds of a pair, or what else the program repeats, in each round, and what the run wrote to stderr. The traces
        are in a folder in `room`."""
        program = program or self.in_pairs(1)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("URSCOPE_", "UR_", "XPTI_"))}
        with tempfile.TemporaryDirectory(dir=room) as folder:
            command = [self.urscope, "run", "--device", "software", "--no-check", "--dir", folder, *options, "--", *before]
            command += program
            own = {"URSCOPE_QUIET": "1", "URSCOPE_LIBRARY": str(LIBRARY_AS_PACKAGED)}
            done = subprocess.run(command, env={**clean, **own, **environment}, capture_output=True, text=True)
            if done.returncode != 0:
                raise Failed(last_line(done.stderr, f"it ended with {done.returncode}"))
            records = sorted(Path(folder).glob("urscope-*"))
        if "--no-shim" not in options and not records:
            raise Failed("nothing was traced")
        return [float(line) for line in done.stdout.split()], done.stderr

    def in_pairs(self, threads, loop=0):
        """The program that gets and puts, with so many threads, and so many turns of a loop behind each call."""
        return [self.pairs, str(ROUNDS), str(PAIRS // threads), str(threads), str(loop)]

    def in_copies(self, *arguments):
        """The program that copies."""
        return [self.copies, str(ROUNDS), str(COPIES), *arguments]

    def take(self, key, measure):
        """Adds the rounds of one turn of a side; a side that failed once is left out."""
        if key in self.failed:
            return
        try:
            self.rounds.setdefault(key, []).extend(measure())
        except Failed as failed:
            self.failed[key] = str(failed)

    def alone(self):
        """The nanoseconds of a call in each round: of spans, and of writes."""
        command = [TARGET / "release/examples/span-cost", str(ROUNDS), "20000"]
        done = subprocess.run(command, env={**os.environ, "TMPDIR": str(TARGET)}, check=True, capture_output=True, text=True)
        return list(zip(*([float(number) for number in line.split()] for line in done.stdout.splitlines())))


def sides(bench, mode, adapter, threads):
    """The sides that run the program on an adapter. Other tools are only in `overhead`."""
    chosen = adapter_choice(adapter)
    if mode == "commands":
        recorded = {**chosen, "URSCOPE_FORMAT": "binary", "URSCOPE_VALIDATE": "off"}
        chosen["ZE_SOFT_ENGINE"] = recorded["ZE_SOFT_ENGINE"] = str(ENGINE)
        for before, alone, shared in [("", [], "shared"), (LAUNCHES, ["launches"], "shared-launches")]:
            yield before + BARE, lambda alone=alone: bench.run(["--no-shim"], chosen, program=bench.in_copies(*alone))[0]
            yield before + "traced, nothing shared", lambda alone=alone: bench.run([], recorded, program=bench.in_copies(*alone))[0]
            yield before + "traced, with shared memory", lambda shared=shared: bench.run([], recorded, program=bench.in_copies(shared))[0]
        return
    program = [bench.ze_pairs, str(ROUNDS), str(PAIRS)] if adapter == LEVEL_ZERO else bench.in_pairs(threads)
    yield BARE, lambda: bench.run(["--no-shim"], chosen, program=program)[0]
    if adapter == LEVEL_ZERO:
        yield "bare, with an fstat of each handle", lambda: bench.run(["--no-shim"], chosen, program=[*program, "fstat"])[0]
    if mode == "threads":
        yield "a loop behind each call", lambda: bench.run(["--no-shim"], chosen, program=bench.in_pairs(threads, LOOP))[0]
    for name, environment in TRACED.items():
        yield name, lambda environment=environment: bench.run([], {**chosen, **environment}, program=program)[0]
    if mode == "overhead":
        recorded = {**chosen, "URSCOPE_FORMAT": "binary", "URSCOPE_VALIDATE": "off"}
        yield f"binary form, traced, on {file_system(IN_MEMORY)}", lambda: bench.run([], recorded, program=program, room=IN_MEMORY)[0]
        level_zero = adapter == LEVEL_ZERO
        yield "strace -f", lambda: bench.peers.straced(chosen, program)
        yield "uftrace", lambda: bench.peers.uftrace(chosen, program, level_zero)
        yield "LTTng, two tracepoints", lambda: bench.peers.tracepoints(chosen, program, level_zero)
        yield "PTI, records counted", lambda: bench.peers.pti(chosen, program, level_zero)
    if mode == "overhead" and adapter != LEVEL_ZERO:
        validating = {**chosen, "UR_ENABLE_LAYERS": "UR_LAYER_FULL_VALIDATION"}
        yield "UR's tracing layer, events counted", lambda: bench.peers.counted(chosen, program)
        yield "UR's validation layer", lambda: bench.run(["--no-shim"], validating)[0]


def summary(figures):
    """The minimum, the lower quartile and the median."""
    lower, median, _ = statistics.quantiles(figures, n=4, method="inclusive")
    return {"minimum": min(figures), "lower_quartile": lower, "median": median}


def rows_of(bench, keys, calls):
    """A row for each side: the nanoseconds of a repetition of so many calls, and what a call has more than without anything."""
    rows = []
    for key in keys:
        adapter, threads, name = key
        row = {"adapter": adapter, "threads": threads, "side": name}
        if key in bench.failed:
            rows.append({**row, "failed": bench.failed[key]})
            continue
        row["ns_per_pair"] = summary(bench.rounds[key])
        of_bare = LAUNCHES + BARE if name.startswith(LAUNCHES) else BARE
        bare = bench.rounds.get((adapter, threads, of_bare))
        if name != of_bare and bare:
            without = summary(bare)
            added = {name: (value - without[name]) / calls for name, value in row["ns_per_pair"].items()}
            row["added_ns_per_call"] = added
        rows.append(row)
    return rows


def show(rows):
    print(f"{'':<50} {'ns of each':^26}   {'added ns per call':^26}")
    print(f"{'':<50} {'min':>8} {'quartile':>8} {'median':>8}   {'min':>8} {'quartile':>8} {'median':>8}")
    for row in rows:
        place = " ".join(filter(None, [row["adapter"], f"{row['threads']} threads" if row.get("threads", 1) > 1 else ""]))
        name = f"{place}: {row['side']}" if place else row["side"]
        if "failed" in row:
            print(f"{name:<50} {row['failed']}")
            continue
        figures = [row.get(of) for of in ("ns_per_pair", "added_ns_per_call")]
        columns = [" ".join(f"{value:>8.0f}" for value in of.values()) if of else " " * 26 for of in figures]
        print(f"{name:<50} {columns[0]}   {columns[1]}".rstrip())


def machine():
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release()}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("mode", choices=["overhead", "threads", "commands"])
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--turns", type=int, default=5, help="how often each side runs (default: 5)")
    arguments = parser.parse_args()

    bench = Bench()
    counts = THREADS if arguments.mode == "threads" else (1,)
    adapters = [*ADAPTERS, LEVEL_ZERO] if arguments.mode == "overhead" else ADAPTERS
    keys = [(adapter, threads, name) for adapter in adapters for threads in counts for name, _ in sides(bench, arguments.mode, adapter, threads)]
    spans, writes = [], []
    for turn in range(arguments.turns):
        print(f"turn {turn + 1} of {arguments.turns}", file=sys.stderr)
        for adapter in adapters:
            for threads in counts:
                for name, measure in sides(bench, arguments.mode, adapter, threads):
                    bench.take((adapter, threads, name), measure)
        if arguments.mode == "overhead":
            of_spans, of_writes = bench.alone()
            spans.extend(of_spans)
            writes.extend(of_writes)

    commands = arguments.mode == "commands"
    rows = rows_of(bench, keys, 1 if commands else CALLS_OF_A_PAIR)
    if arguments.mode == "overhead":
        for name, figures in (("a tracing-chrome span per call, alone", spans), ("two write(2) per call, alone", writes)):
            rows.append({"adapter": None, "side": name, "added_ns_per_call": summary(figures)})
    about = {"mode": arguments.mode, "date": datetime.date.today().isoformat(), "machine": machine()}
    about |= {"file_system": file_system(TARGET), "turns": arguments.turns, "rounds": ROUNDS, "copies" if commands else "pairs": COPIES if commands else PAIRS}
    per_thread = " by all threads" if arguments.mode == "threads" else ""
    repeated = f"{COPIES} copies of 64 bytes, or launches" if commands else f"{PAIRS} pairs of a get and a put{per_thread}"
    print(f"{arguments.turns * ROUNDS} rounds of {repeated}; {about['machine']['cores']} cores; traces on {about['file_system']}")
    show(rows)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
