#!/usr/bin/env python3
"""Measures how fast the judge reads, next to other readers of the same file: `scripts/bench judge [MEGABYTES]`.

The trace generator (analyzer/command/examples/trace-generator.rs) writes a run of four processes, 1000 MB by default. The judge reads
all of it, and then one of the four files, which jq, Python and Perfetto's trace processor read too. Each counts the records
of calls; a reader whose count is wrong is reported and not measured. The judge's figures are the best of three.
"""

import json
import re
import shutil
import subprocess
import sys

from measured import CYCLE_RECORDS, ROOT, TARGET, generated_run, measured

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

    with generated_run(megabytes) as (folder, cycles):
        files = sorted(folder.glob("urscope-*.json"))
        one = str(files[0])
        check = [urscope, "check", "--format", "json"]
        python = shutil.which("python3")
        rows = [
            ("urscope, the run", urscope, [*check, folder], files, judged, 3),
            ("urscope, one file", urscope, [*check, one], files[:1], judged, 3),
            ("Perfetto (wasm)", shutil.which("node"), ["node", ROOT / "scripts/perfetto-check.mjs", one], files[:1], imported, 1),
            ("jq", shutil.which("jq"), ["jq", JQ, one], files[:1], int, 1),
            ("Python json", python, ["python3", "-c", PYTHON, one], files[:1], int, 1),
        ]
        print(f"{'':<18} {'MB':>6} {'records':>10} {'s':>7} {'records/s':>11} {'MB/s':>6} {'peak MB':>8}  as fast as urscope")
        best = None
        for name, tool, command, read, count, times in rows:
            if not tool:
                print(f"{name:<18} not installed")
                continue
            expected = CYCLE_RECORDS * cycles * len(read)
            try:
                runs = [measured(command) for _ in range(times)]
                counted = count(runs[0].text)
            except (RuntimeError, ValueError) as error:
                missing = "run scripts/setup first" in str(error)
                print(f"{name:<18} {'not installed' if missing else f'failed: {error}'}")
                continue
            if counted != expected:
                print(f"{name:<18} counted {counted} records of {expected}")
                continue
            seconds, peak = min(run.seconds for run in runs), max(run.peak_mb for run in runs)
            size = sum(file.stat().st_size for file in read) / 1e6
            rate = counted / seconds
            best = rate if len(read) == 1 and best is None else best
            ratio = f"1/{best / rate:.1f}" if len(read) == 1 and best != rate else ""
            print(f"{name:<18} {size:>6.0f} {counted:>10} {seconds:>7.2f} {rate:>11.3g} {size / seconds:>6.0f} {peak:>8.0f}  {ratio}")


if __name__ == "__main__":
    main()
