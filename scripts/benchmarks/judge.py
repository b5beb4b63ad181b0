#!/usr/bin/env python3
"""Measures how fast the judge reads, next to other readers of the same file: `scripts/bench judge [MEGABYTES]`.

The trace generator (analyzer/command/examples/trace-generator.rs) writes a run of four processes in both forms of the trace, 1000 MB by
default in the Chrome form. The judge reads all of it, and then one of the four files, which Perfetto's trace processor reads too, and jq
and Python in the Chrome form. Each counts the records of calls; a reader whose count is wrong is reported and not measured. The
judge's figures are the best of three. "per core" divides by the CPU time of all its threads. "as fast" compares the wall clock, and the
CPU time in brackets.

At last it reads runs of 1,000 and 10,000 processes that made 12 calls each, all at the same time. The difference is what a process costs.
"""

import json
import re
import shutil
import subprocess
import sys

from measured import CYCLE_RECORDS, ROOT, SMALL_CYCLES, TARGET, generated_run, measured, small_traces

FEW, MANY = 1000, 10_000  # Processes.

# Line by line, as whoever writes a script for such a trace does it.
PYTHON = """
import json, sys
print(sum(json.loads(line.strip(",\\n"))["ph"] in "BE" for line in open(sys.argv[1]) if len(line) > 2))
"""
JQ = 'map(select(.ph == "B" or .ph == "E")) | length'


def judged(text):
    return 2 * sum(json.loads(text)["calls"].values())


def imported(text):
    return 2 * json.loads(text)["counts"]["slices"]


def main():
    arguments = sys.argv[1:]
    if len(arguments) > 1 or not all(re.fullmatch("[1-9][0-9]*", size) for size in arguments):
        sys.exit("usage: scripts/bench judge [MEGABYTES]")
    megabytes = int(arguments[0]) if arguments else 1000
    build = ["cargo", "build", "--quiet", "--release", "-p", "urscope-command", "--bin", "urscope", "--example", "trace-generator"]
    subprocess.run(build, cwd=ROOT, check=True)
    urscope = TARGET / "release/urscope"

    columns = ["MB", "records", "s", "records/s", "per core", "GB/s", "peak MB"]
    widths = [6, 10, 7, 11, 11, 6, 8]
    print(f"{'':<26}", *(f"{name:>{width}}" for name, width in zip(columns, widths)), " as fast as urscope")
    for form, options in (("Chrome", []), ("binary", ["--binary"])):
        with generated_run(megabytes, *options) as (folder, cycles):
            compare(form, urscope, folder, cycles)
    for form, options in (("Chrome", []), ("binary", ["--binary"])):
        per_process(form, urscope, options)


def per_process(form, urscope, options):
    """What a process costs in a run of very many."""
    runs = []
    for processes in (FEW, MANY):
        with small_traces(processes, *options) as folder:
            run = measured([urscope, "check", "--format", "json", folder])
        if judged(run.text) != CYCLE_RECORDS * SMALL_CYCLES * processes:
            sys.exit(f"{form}: counted {judged(run.text)} records in {processes} small traces")
        runs.append(run)
    few, many = runs
    added = MANY - FEW
    memory = 1_024_000 * (many.peak_mb - few.peak_mb) / added
    time = 1e6 * (many.cpu_seconds - few.cpu_seconds) / added
    print(f"{form}: {MANY} small traces  {many.seconds:.2f} s, {many.peak_mb:.0f} MB; a process adds {memory:.0f} bytes and {time:.0f} µs of CPU")


def compare(form, urscope, folder, cycles):
    """One line for each reader of a run."""
    files = sorted(folder.glob("urscope-*"))
    one = str(files[0])
    check = [urscope, "check", "--format", "json"]
    rows = [
        ("urscope, the run", urscope, [*check, folder], files, judged, 3),
        ("urscope, one file", urscope, [*check, one], files[:1], judged, 3),
        ("Perfetto (wasm)", shutil.which("node"), ["node", ROOT / "scripts/perfetto-check.mjs", one], files[:1], imported, 1),
    ]
    if form == "Chrome":
        python = shutil.which("python3")
        rows.append(("jq", shutil.which("jq"), ["jq", JQ, one], files[:1], int, 1))
        rows.append(("Python json", python, ["python3", "-c", PYTHON, one], files[:1], int, 1))
    best = None
    fastest_cpu = None
    for reader, tool, command, read, count, times in rows:
        name = f"{form}: {reader}"
        if not tool:
            print(f"{name:<26} not installed")
            continue
        expected = CYCLE_RECORDS * cycles * len(read)
        try:
            runs = [measured(command) for _ in range(times)]
            counted = count(runs[0].text)
        except (RuntimeError, ValueError) as error:
            missing = "run scripts/setup first" in str(error)
            print(f"{name:<26} {'not installed' if missing else f'failed: {error}'}")
            continue
        if counted != expected:
            print(f"{name:<26} counted {counted} records of {expected}")
            continue
        fastest = min(runs, key=lambda run: run.seconds)
        size = sum(file.stat().st_size for file in read)
        rate = counted / fastest.seconds
        per_core = counted / min(run.cpu_seconds for run in runs)
        if len(read) == 1 and best is None:
            best, fastest_cpu = rate, per_core
        ratio = f"1/{best / rate:.1f} (1/{fastest_cpu / per_core:.1f})" if len(read) == 1 and best != rate else ""
        figures = f"{size / 1e6:>6.0f} {counted:>10} {fastest.seconds:>7.2f} {rate:>11.3g} {per_core:>11.3g}"
        print(f"{name:<26} {figures} {size / 1e9 / fastest.seconds:>6.2f} {max(run.peak_mb for run in runs):>8.0f}  {ratio}")


if __name__ == "__main__":
    main()
