#!/usr/bin/env python3
"""Measures what the software device adds to a launch of a kernel: `scripts/bench kernels [--json FILE] [--turns N]`.

The program scripts/benchmarks/peers/launches.cpp launches an empty kernel of one work item: by Intel's OpenCL runtime for the CPU itself, with a usual queue and
with its fastest one, which runs kernels in the thread that enqueues them, and by the software device, which uses that runtime as its engine. The host waits
for each launch, or after every 1,000. Each side is a process of its own, and the sides take turns. Shown are the nanoseconds of a launch, minimum and
median of all rounds, and how many times that is what the usual queue takes; and the milliseconds of the first use in a process.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import ROOT, TARGET

# What runs the kernels is in this release's environment, as for the tests (tests/src/run.rs).
ENGINE_RELEASE = "2026.1.2"
ENGINE = ROOT / "target/runtime" / ENGINE_RELEASE / "lib/libintelocl.so"
SOURCE = ROOT / "scripts/benchmarks/peers/launches.cpp"
SIDES = {"engine": "the engine itself", "engine-inline": "the engine itself, in the calling thread", "device": "the software device"}
WAYS = {"waited": "waited for each", "queued": "waited after 1,000"}
ROUNDS = 10
LAUNCHES = 5000


def prepared(folder):
    """Builds everything; the path of the program, and the environment of its processes."""
    subprocess.run([ROOT / "scripts/setup", "--runtime", ENGINE_RELEASE], check=True)
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "urscope-device-loader"], cwd=ROOT, check=True)
    program = folder / "launches"
    subprocess.run(["g++", "-std=c++17", "-O2", "-pthread", "-I", ROOT / "tests/apps", SOURCE, "-o", program, "-ldl"], check=True)
    (folder / "libze_loader.so.1").symlink_to(TARGET / "release/libze_loader.so")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("URSCOPE_", "ZE_", "LD_", "CL_"))}
    return program, clean | {"LD_LIBRARY_PATH": str(folder), "ZE_SOFT_ENGINE": str(ENGINE)}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench kernels")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--turns", type=int, default=5, help="how often each side takes its turn (default: 5)")
    arguments = parser.parse_args()

    launches = {(way, side): [] for way in WAYS for side in SIDES}
    first = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(dir=TARGET) as temporary:
        program, environment = prepared(Path(temporary))
        for turn in range(arguments.turns):
            print(f"turn {turn + 1} of {arguments.turns}", file=sys.stderr)
            for way, side in launches:
                command = [program, side, way, str(ROUNDS), str(LAUNCHES)]
                done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                used, *rounds = (float(line) for line in done.stdout.split())
                first[side].append(used)
                launches[way, side] += rounds

    rows = []
    print(f"{'ns of a launch':<62} {'min':>9} {'median':>9}   {'times the engine':^17}")
    for way, side in launches:
        values, engine = ([min(rounds), statistics.median(rounds)] for rounds in (launches[way, side], launches[way, "engine"]))
        times = [value / of for value, of in zip(values, engine)]
        print(f"{SIDES[side] + ', ' + WAYS[way]:<62} {values[0]:>9.0f} {values[1]:>9.0f}   {times[0]:>8.2f} {times[1]:>8.2f}")
        rows.append({"side": side, "way": way, "minimum_ns": values[0], "median_ns": values[1], "times_the_engine": times})
    print(f"{'ms of the first use':<62} {'min':>9} {'median':>9}")
    for side, used in first.items():
        print(f"{SIDES[side]:<62} {min(used):>9.0f} {statistics.median(used):>9.0f}")
        rows.append({"side": side, "way": "first use", "minimum_ms": min(used), "median_ms": statistics.median(used)})
    if arguments.json:
        about = {"mode": "kernels", "date": datetime.date.today().isoformat(), "turns": arguments.turns}
        Path(arguments.json).write_text(json.dumps(about | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
