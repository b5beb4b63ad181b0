"""The other tools that `scripts/bench overhead` puts around its programs. What is not on the machine is unpacked below target/."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from measured import ROOT, TARGET

UNPACKED = ROOT / "target/peers/usr"
LIBRARIES = UNPACKED / "lib/x86_64-linux-gnu"
PTI = "intel-pti-1.2.0"
SOURCES = ROOT / "scripts/benchmarks/peers"
# The fields of the two tracepoints of a call (scripts/benchmarks/peers/call_tracepoints.hpp).
BYTES_OF_A_CALL = 3 * 8 + 2 * 8


class Failed(Exception):
    """A side that cannot be measured, and why."""


def last_line(text, otherwise):
    return (text.strip().splitlines() or [otherwise])[-1]


def done(command, **options):
    """What a command writes to stdout; fails if it does."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
    except (OSError, subprocess.CalledProcessError) as failed:
        raise Failed(last_line(getattr(failed, "stderr", ""), str(failed))) from None


def require(seen, expected, what):
    if seen < expected:
        raise Failed(f"it recorded {seen} of {expected} {what}")


class Peers:
    """Each method runs a program that makes so many calls under one tool, by the function `run`, and returns its figures. It fails if
    the tool has not recorded all calls."""

    def __init__(self, run, runtime, calls):
        self.run, self.runtime, self.calls = run, runtime, calls
        self.built = {}

    def library(self, source, *flags):
        """A library of scripts/benchmarks/peers, compiled."""
        key = (source, flags)
        if key not in self.built:
            tracepoints = "-DTRACEPOINTS" in flags
            made = TARGET / "apps" / f"lib{source}{'_tracepoints' * tracepoints}.so"
            headers = [UNPACKED / "include", UNPACKED / "include/x86_64-linux-gnu", self.runtime / "include"]
            command = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{SOURCES}", *(f"-isystem{one}" for one in headers)]
            link = [f"-L{LIBRARIES}", "-l:liblttng-ust.so.1", "-l:liblttng-ust-common.so.1"] if tracepoints else []
            link += [f"-L{self.runtime}/lib", "-lxptifw"] if source == "counting_subscriber" else []
            done([*command, SOURCES / f"{source}.cpp", *flags, *link, "-o", made])
            self.built[key] = made
        return self.built[key]

    def counted(self, environment, program, *flags):
        """The runtime's tracing layer with a subscriber that counts."""
        layer = {
            "UR_ENABLE_LAYERS": "UR_LAYER_TRACING",
            "XPTI_TRACE_ENABLE": "1",
            "XPTI_FRAMEWORK_DISPATCHER": f"{self.runtime}/lib/libxptifw.so",
            "XPTI_SUBSCRIBERS": str(self.library("counting_subscriber", *flags)),
        }
        figures, errors = self.run(["--no-shim"], {**environment, **layer}, program=program)
        seen = max((int(number) for number in re.findall(r"^counted (\d+) events$", errors, re.MULTILINE)), default=0)
        require(seen, 2 * self.calls, "events")
        return figures

    def straced(self, environment, program):
        if not shutil.which("strace"):
            raise Failed("not installed")
        return self.run(["--no-shim"], environment, before=["strace", "-f", "-qq", "-o", "/dev/null"], program=program)[0]

    def uftrace(self, environment, program, level_zero):
        """The calls of libsycl that the program makes through its PLT. It finds those of Level Zero by name: there, a wrapper that is
        compiled with -pg makes them visible."""
        done([ROOT / "scripts/setup", "--peers"])
        wrapper = self.library("ze_wrapper", "-pg")
        environment = {**environment, "LD_LIBRARY_PATH": f"{LIBRARIES}/uftrace:{LIBRARIES}"}
        with tempfile.TemporaryDirectory(dir=TARGET) as folder:
            record = [UNPACKED / "bin/uftrace", "record", "--force", "--no-event", "-d", f"{folder}/data"]
            before = ["env", f"LD_PRELOAD={wrapper}", *record, "--no-libcall"] if level_zero else record
            figures = self.run(["--no-shim"], environment, before=before, program=program)[0]
            report = [UNPACKED / "bin/uftrace", "report", "-d", f"{folder}/data", "-f", "call"]
            text = done(report, env={**os.environ, **environment})
        name = r"zeMem(Get|Put)IpcHandle" if level_zero else r".*::ipc::memory::(get|put)"
        seen = [int(line.split()[0]) for line in text.splitlines() if re.fullmatch(rf"\s*\d+\s+{name}", line)]
        require(sum(seen), self.calls, "calls")
        return figures

    def tracepoints(self, environment, program, level_zero):
        """Two tracepoints of LTTng for each call: by a wrapper of Level Zero, or by a subscriber of the runtime's tracing layer."""
        done([ROOT / "scripts/setup", "--peers"])
        with tempfile.TemporaryDirectory(dir=TARGET) as folder, session(Path(folder)) as (lttng, own):
            environment = {**environment, **own}
            if level_zero:
                before = ["env", f"LD_PRELOAD={self.library('ze_wrapper', '-DTRACEPOINTS')}"]
                figures = self.run(["--no-shim"], environment, before=before, program=program)[0]
            else:
                figures = self.counted(environment, program, "-DTRACEPOINTS")
            lttng("stop")
            lost = re.findall(r"Discarded events: (\d+)", lttng("list", "bench"))
            if lost != ["0"]:
                raise Failed(f"it discarded {' '.join(lost) or 'all'} events")
            size = sum(file.stat().st_size for file in Path(folder).rglob("calls_*") if file.suffix != ".idx")
        require(size, self.calls * BYTES_OF_A_CALL, "bytes")
        return figures

    def pti(self, environment, program, level_zero):
        """Records of PTI's views of the driver's calls and of the runtime's."""
        done([ROOT / "scripts/setup", "--runtime", PTI])
        recorder = self.library("pti_records")
        folders = f"{self.runtime.parent / PTI}/lib:{self.runtime}/lib"
        environment = {**environment, "LD_LIBRARY_PATH": folders}
        figures, errors = self.run(["--no-shim"], environment, before=["env", f"LD_PRELOAD={recorder}"], program=program)
        seen = re.search(r"^PTI recorded (\d+) calls of the driver and (\d+) of the runtime$", errors, re.MULTILINE)
        if not seen:
            raise Failed(last_line(errors, "PTI is not there"))
        require(int(seen[1 if level_zero else 2]), self.calls, "calls")
        return figures


@contextmanager
def session(folder):
    """A session of LTTng with a daemon of its own, which writes to a folder: a function that calls lttng(1), and the environment of a
    program that takes part."""
    # The daemon of root is one for the whole machine, so this one must have another user.
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        own = {
            "LTTNG_HOME": home,
            "LTTNG_CONSUMERD64_BIN": str(LIBRARIES / "lttng/libexec/lttng-consumerd"),
            "LTTNG_SESSION_CONFIG_XSD_PATH": f"{UNPACKED}/share/xml/lttng/",
            "LD_LIBRARY_PATH": str(LIBRARIES),
        }
        environment = {**os.environ, **own}

        def lttng(*words):
            return done([*user, UNPACKED / "bin/lttng", "--no-sessiond", *words], env=environment)

        command = [*user, UNPACKED / "bin/lttng-sessiond", "--no-kernel"]
        daemon = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(100):
                if (Path(home) / ".lttng/client-lttng-sessiond").exists() or daemon.poll() is not None:
                    break
                time.sleep(0.1)
            if daemon.poll() is not None:
                raise Failed(last_line(daemon.stderr.read(), "lttng-sessiond ended"))
            lttng("create", "bench", f"--output={folder}")
            # Room for all events, so that none is discarded if the daemon is slow.
            lttng("enable-channel", "--userspace", "--subbuf-size=8M", "--num-subbuf=8", "calls")
            lttng("enable-event", "--userspace", "bench:*", "--channel=calls")
            lttng("start")
            yield lttng, own
            lttng("destroy")
        finally:
            daemon.terminate()
            daemon.communicate()
