#!/usr/bin/env python3
"""Runs the clients of the tests with the newest packages on PyPI, and prints a table: `scripts/clients --newest`.

A package whose newest version is pinned is not run again. The environments are made in target/newest, each time anew. The exit code is 0 if
every client was right and clean, 1 if one was not, and 2 if PyPI could not be asked.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "scripts/requirements"
RUNTIME = "2026.2.0"
NEWEST = ROOT / "target/newest"
PIP = ROOT / "target/runtime/pip/bin/python"
#: The packages, where they are pinned, and what uses them: words in the names of clients (tests/src/clients.rs), or end-to-end tests.
PACKAGES = {
    "impi-rt": ("impi-*", ["Intel MPI", "IMB", "oneCCL", "Intel SHMEM"]),
    "mpi4py": ("impi-*", ["Intel MPI"]),
    "oneccl": ("oneccl-*", ["oneCCL"]),
    "ishmem": ("ishmem-*", ["Intel SHMEM"]),
    "intel-pti": ("intel-pti-*", ["intel-pti"]),
    "intel-sycl-rt": (RUNTIME, ["oneCCL", "libumf"]),
    "intel-cmplr-lib-ur": (RUNTIME, ["oneCCL", "libumf"]),
    "umf": (RUNTIME, ["libumf"]),
    "dpctl": (RUNTIME, ["python::"]),
    "mpich": ("mpich-*", ["launchers::"]),
    "openmpi": ("openmpi-*", ["launchers::"]),
}


def version(text):
    """A version as numbers, to compare it."""
    return [int(number) for number in re.findall(r"\d+", text)]


def pinned():
    """The newest pinned version of each package."""
    found = {}
    for package, (pattern, _) in PACKAGES.items():
        texts = "".join(file.read_text() for file in REQUIREMENTS.glob(pattern + ".txt"))
        found[package] = max(re.findall(rf"^{package}==(\S+)", texts, re.MULTILINE), key=version)
    return found


def pip(*arguments, python=PIP):
    options = ["--python", str(python), "--disable-pip-version-check", "--retries", "1", "--timeout", "20"]
    return subprocess.run([PIP, "-m", "pip", *options, "install", "--quiet", *arguments], capture_output=True, text=True)


def complaint(ended, marks=("ERROR: ",)):
    """The first line of what a command wrote that begins with one of these, or the last one."""
    lines = [line for line in ended.stderr.splitlines() if line.strip()] or [f"it ended with {ended.returncode}"]
    return next((line for line in lines if line.startswith(tuple(marks))), lines[-1]).removeprefix("ERROR: ")


def newest():
    """The newest version of each package for this Python, whatever it depends on."""
    asked = pip("--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", "--report", "-", *PACKAGES)
    if asked.returncode:
        print(f"scripts/clients: pip cannot tell the newest versions; is PyPI reachable? {complaint(asked)}", file=sys.stderr)
        sys.exit(2)
    packages = (entry["metadata"] for entry in json.loads(asked.stdout)["install"])
    return {re.sub("[-_.]+", "-", package["name"]).lower(): package["version"] for package in packages}


def install(pattern, versions):
    """Makes an environment with these packages, in place of all that are pinned in files of this name. What is wrong, if it cannot be."""
    files = list(REQUIREMENTS.glob(pattern + ".txt"))
    text = "".join(file.read_text() for file in files)
    # The headers of a package are one of the same version.
    wanted = [f"{name}=={found}" for package, found in versions.items() for name in (package, f"{package}-devel") if f"{name}==" in text]
    alone = ["--no-deps"] if "Without dependencies" in text else []
    first, *others = [NEWEST / file.stem for file in files]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", first], check=True)
    installed = pip("--no-compile", "--only-binary", ":all:", *alone, *wanted, python=first / "bin/python")
    if installed.returncode:
        shutil.rmtree(first)
        return f"cannot be installed: {complaint(installed)}"
    for other in others:
        other.symlink_to(first)
    return None


def names(word):
    """The clients with this word in their names."""
    source = (ROOT / "tests/src/clients.rs").read_text()
    return [name for name in re.findall(r'\bclient\("([^"]+)"', source) if word in name]


def run(name):
    """Runs a client, or the tests of a module: what is wrong with it."""
    if name.endswith("::"):
        command = ["cargo", "test", "--quiet", "--workspace", "--test", "end_to_end", "--", name]
    else:
        command = ["cargo", "run", "--quiet", "-p", "urscope-tests", "--example", "clients", "--", "1", name]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "URSCOPE_E2E_ENVIRONMENTS": str(NEWEST)}, capture_output=True, text=True)
    if ended.returncode == 0:
        return None
    print(ended.stdout + ended.stderr, file=sys.stderr)
    return complaint(ended, [f"{name}: ", "error", "test program"]).removeprefix(f"{name}: ")


def main():
    # The interpreter with pip comes with every environment.
    subprocess.run([ROOT / "scripts/setup"], check=True)
    known, found = pinned(), newest()
    newer = [package for package in PACKAGES if version(found[package]) > version(known[package])]
    shutil.rmtree(NEWEST, ignore_errors=True)
    broken = {}
    for pattern in {PACKAGES[package][0] for package in newer}:
        broken[pattern] = install(pattern, {package: found[package] for package in PACKAGES if PACKAGES[package][0] == pattern})
    results = {}
    print("| package | pinned | newest | clients | result |\n|---|---|---|---|---|", flush=True)
    for package, (pattern, words) in PACKAGES.items():
        row = f"| {package} | {known[package]} | {found[package]} |"
        if package not in newer:
            print(f"{row} | the newest is pinned |")
            continue
        if broken[pattern]:
            print(f"{row} | {broken[pattern]} |")
            continue
        alike = {}
        for name in (name for word in words for name in names(word) or [word]):
            if name not in results:
                results[name] = run(name)
            alike.setdefault(results[name] or "right and clean", []).append(name)
        for result, clients in alike.items():
            print(f"{row} {'; '.join(clients)} | {result} |", flush=True)
    sys.exit(1 if any(broken.values()) or any(results.values()) else 0)


if __name__ == "__main__":
    main()
