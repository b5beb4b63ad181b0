"""What the measuring scripts share: traces of a made-up run, and commands whose time and memory are taken."""

import os
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LIBRARY_AS_PACKAGED = TARGET / "compact/liburscope.so"

RANKS = 4
CYCLE_BYTES = 2297  # What a process of the trace generator writes in one cycle, in the Chrome form.
CYCLE_RECORDS = 12
SMALL_CYCLES = 2


def library_as_packaged():
    """Builds the library in the profile of `scripts/packages/build`, which is what people install."""
    subprocess.run(["cargo", "build", "--quiet", "--profile", "compact", "-p", "urscope-preload"], cwd=ROOT, check=True)


@dataclass
class Measured:
    """A command that has ended: its standard output, and what it cost."""

    text: str
    seconds: float
    cpu_seconds: float
    peak_mb: float


# Runs a command from a process that is small itself: a process's peak begins with what the one had that started it.
RUN = """
import os, sys, time
start = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
seconds = time.monotonic() - start
os.write(int(sys.argv[1]), f"{status} {seconds} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}".encode())
"""


def measured(command):
    """Runs a command to its end; fails if it did."""
    read, write = os.pipe()
    with tempfile.TemporaryFile() as out, open(read) as figures:
        run = [sys.executable, "-ISc", RUN, str(write), *map(str, command)]
        process = subprocess.Popen(run, stdout=out, stderr=subprocess.PIPE, pass_fds=[write])
        os.close(write)
        errors = process.stderr.read().decode(errors="replace")
        process.wait()
        status, seconds, cpu_seconds, peak = figures.read().split() or ["256", "0", "0", "0"]
        out.seek(0)
        text = out.read().decode()
    code = os.waitstatus_to_exitcode(int(status))
    # urscope ends with 1 when it has findings, and with 2 when traces of the run are missing; the importer with 1 when it has warnings.
    if process.returncode != 0 or code not in (0, 1, 2):
        raise RuntimeError(errors.strip().splitlines()[-1] if errors.strip() else f"it ended with {code}")
    return Measured(text, float(seconds), float(cpu_seconds), int(peak) / 1000)


@contextmanager
def small_traces(processes, *options):
    """A folder with the traces of very many processes that do little, all at the same time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # The generator has all of them open.
    room = ROOT / "target/tmp"
    room.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=room) as folder:
            generator = TARGET / "release/examples/trace-generator"
            command = [generator, folder, "--ranks", str(processes), "--cycles", str(SMALL_CYCLES), *options]
            subprocess.run(command, check=True)
            yield Path(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def generated_run(megabytes, *options):
    """A folder with the traces of four processes; also the number of cycles that each of them made.

    `megabytes` is the size in the Chrome form. The release build of the trace generator must be there.
    """
    room = ROOT / "target/tmp"  # /tmp may be memory.
    room.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=room) as folder:
        cycles = max(1, megabytes * 1_000_000 // RANKS // CYCLE_BYTES)
        generator = TARGET / "release/examples/trace-generator"
        subprocess.run([generator, folder, "--ranks", str(RANKS), "--cycles", str(cycles), *options], check=True)
        # Every reader finds the files in memory.
        files = sorted(Path(folder).glob("urscope-*"))
        subprocess.run(["cat", *files], stdout=subprocess.DEVNULL, check=True)
        yield Path(folder), cycles
