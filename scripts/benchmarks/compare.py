#!/usr/bin/env python3
"""Compares the judge of another revision with that of the working tree: `scripts/bench compare REV [MEGABYTES] [TURNS]`.

Both are built for release; the other revision in target/compare, from a git worktree of its own. The two then take turns with
`urscope check` on the same generated traces, so that a slow minute of the machine affects both: first on a clean run, then
on a run with findings. Wall clock, CPU time (user and system) and peak memory are printed, with the ratio of the working tree
to the other revision. On a busy machine, look at the minimum of the CPU time.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys

from measured import ROOT, TARGET, generated_run, measured

USAGE = "usage: scripts/bench compare REV [MEGABYTES] [TURNS]"
PLACE = TARGET / "compare"
RUNS = {"clean run": [], "run with findings": ["--leak", "1000", "--double", "1000"]}


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def built(revision):
    """The release binary of a revision, built once and kept."""
    binary = PLACE / revision / "urscope"
    if binary.exists():
        return binary
    source = PLACE / revision / "source"
    git("worktree", "prune")
    if not source.exists():
        git("worktree", "add", "--detach", "--force", str(source), revision)
    try:
        # One target folder for all revisions: what they depend on is built once.
        build = PLACE / "build"
        command = ["cargo", "build", "--quiet", "--release", "--bin", "urscope"]
        subprocess.run(command, cwd=source, env={**os.environ, "CARGO_TARGET_DIR": str(build)}, check=True)
        shutil.copy(build / "release/urscope", binary)
    finally:
        git("worktree", "remove", "--force", str(source))
    return binary


def findings(text):
    """What a report says, as far as two revisions must agree: the verdict, and each finding's rule and count."""
    report = json.loads(text)
    found = sorted((finding["rule"], finding.get("count", 1)) for finding in report["findings"])
    return report["verdict"], found, sum(report["calls"].values())


def row(name, unit, figures, digits):
    """One line for each of both sides, and their ratio."""
    for what, of in (("minimum", min), ("median", statistics.median)):
        before, now = (of(side) for side in figures)
        print(f"  {name + ', ' + what:<22} {before:>10.{digits}f} {now:>10.{digits}f} {unit:<3} {now / before:>8.3f}")


def main():
    arguments = sys.argv[1:]
    if not 1 <= len(arguments) <= 3 or not all(re.fullmatch("[1-9][0-9]*", number) for number in arguments[1:]):
        sys.exit(USAGE)
    try:
        revision = git("rev-parse", "--verify", "--quiet", arguments[0] + "^{commit}")
    except subprocess.CalledProcessError:
        sys.exit(f"scripts/bench compare: git knows no revision '{arguments[0]}'")
    megabytes, turns = (int(number) for number in (arguments[1:] + ["200", "10"][len(arguments) - 1 :]))

    build = ["cargo", "build", "--quiet", "--release", "--bin", "urscope", "--example", "trace-generator"]
    subprocess.run(build, cwd=ROOT, check=True)
    sides = [built(revision), TARGET / "release/urscope"]

    print(f"urscope check, {megabytes} MB, {turns} turns each; {revision[:12]} against the working tree")
    for name, options in RUNS.items():
        with generated_run(megabytes, *options) as (folder, _):
            results = [[], []]
            for turn in range(-1, turns):  # The first turn only warms up.
                for side in (0, 1) if turn % 2 else (1, 0):
                    result = measured([sides[side], "check", "--format", "json", folder])
                    if turn >= 0:
                        results[side].append(result)
            reports = [findings(side[0].text) for side in results]
        print(f"\n{name:<24} {revision[:10]:>10} {'now':>10} {'':<3} {'ratio':>8}")
        row("wall clock", "s", [[result.seconds for result in side] for side in results], 3)
        row("CPU time", "s", [[result.cpu_seconds for result in side] for side in results], 3)
        row("peak memory", "MB", [[result.peak_mb for result in side] for side in results], 1)
        verdict, found, calls = reports[1]
        print(f"  {calls} calls, verdict {verdict}, {len(found)} findings: ", end="")
        print("the same on both sides" if reports[0] == reports[1] else f"NOT the same; before: {reports[0]}")


if __name__ == "__main__":
    main()
