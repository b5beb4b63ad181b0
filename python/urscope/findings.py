"""What ``urscope check`` says of traces, as objects."""

from __future__ import annotations

import html
import json
import subprocess
from dataclasses import asdict, dataclass, field
from os import PathLike, fspath
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._command import command_path

__all__ = ["Finding", "Frame", "Location", "Process", "Report", "check"]


#: The frames of a stack in the text of a finding.
_SHOWN_FRAMES = 10


@dataclass(frozen=True)
class Frame:
    """One frame of a call stack."""

    module: str
    """The path of the program or library, or of the source of a frame of Python; empty if the address is in none."""
    offset: int
    """The address in the module; 0 for a frame of Python."""
    function: Optional[str]
    file: Optional[str]
    line: Optional[int]
    """Counted from 1."""
    program: bool = True
    """Whether it is of the program: not of the runtime, the interpreter and its standard library, dpctl, or this package."""

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else f" in {self.module.rpartition('/')[2]}"
        return f"{self.function or hex(self.offset)}{place}"


@dataclass(frozen=True)
class Location:
    """A place in a process of the run."""

    host: str
    pid: int
    executable: str
    tid: int
    time_ns: int
    """Nanoseconds since the first process of the run began."""
    function: Optional[str]
    """The function of Unified Runtime that was called."""
    call: Optional[int]
    """The number of the call in its process, from 1."""
    stack: Tuple[Frame, ...]
    """The call stack, innermost frame first."""

    def program_frames(self) -> List[Frame]:
        """The frames of the program, innermost first; all frames if there are none."""
        return [frame for frame in self.stack if frame.program] or list(self.stack)


@dataclass(frozen=True)
class Finding:
    """One finding. ``urscope explain RULE`` explains its rule."""

    rule: str
    severity: str
    """``"note"``, ``"warning"`` or ``"error"``."""
    message: str
    advice: str
    location: Location
    """Where it was found."""
    other: Optional[Location]
    """The other place that it involves, often in another process."""
    count: int
    """How often it was found; the rest describes the first time."""
    size: Optional[int]
    """The size of the object in bytes."""
    kind: Optional[str]
    """The kind of the object: ``"usm"``, ``"mem-handle"``, ``"mapping"`` and so on."""
    fingerprint: Optional[str]
    """Identifies handle data: ``urscope handle FINGERPRINT DIR`` prints their history."""
    identity: str
    """The same for equal findings of other runs."""
    fails: bool
    """Whether it makes the verdict ``"findings"``."""

    def __str__(self) -> str:
        lines = [f"{self.severity}: {self.rule}: {self.message}"]
        for name, place in (("here", self.location), ("there", self.other)):
            if place is not None:
                lines += [f"  {name:<5} {place.executable.rpartition('/')[2]} (pid {place.pid}), {place.function}"]
                lines += [f"        at {frame}" for frame in place.program_frames()[:_SHOWN_FRAMES]]
        return "\n".join([*lines, f"  help  {self.advice}"])


@dataclass(frozen=True)
class Process:
    """One traced process of the run."""

    pid: int
    host: str
    executable: str
    calls: int
    """How many calls were recorded."""
    ipc_calls: int
    """How many of them were ``urIPC…``."""
    ended: str
    """``"exited"``, ``"killed"``, ``"running"``, ``"exec"`` or ``"incomplete"``."""


@dataclass(frozen=True)
class Report(Sequence[Finding]):
    """The result of an analysis: a sequence of its findings, by descending severity."""

    verdict: str
    """``"clean"``, ``"findings"``, ``"partly-judged"`` or ``"not-judged"``."""
    reason: Optional[str]
    """Why nothing was judged, or not everything."""
    findings: Tuple[Finding, ...]
    processes: Tuple[Process, ...]
    calls: Mapping[str, int]
    """How often each function was called."""
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    """The whole report: the object that ``urscope check --format json`` prints."""

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def to_pandas(self) -> Any:
        """A :class:`pandas.DataFrame` with a row for each finding: its fields, and ``pid``, ``function``, ``file`` and ``line`` of
        the place where it was found. Raises ImportError without pandas.
        """
        import pandas

        rows = []
        for finding in self.findings:
            row = asdict(finding)
            del row["location"], row["other"]
            named = next((frame for frame in finding.location.program_frames() if frame.file), None)
            row.update(
                pid=finding.location.pid,
                time_ns=finding.location.time_ns,
                function=finding.location.function,
                file=named and named.file,
                line=named and named.line,
                other_pid=finding.other and finding.other.pid,
            )
            rows.append(row)
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        """The view in a notebook: the verdict, and the findings with what opens below each of them."""
        summary = ", ".join(f"{process.executable.rpartition('/')[2]} (pid {process.pid})" for process in self.processes)
        parts = [f"<p><b>{html.escape(self.verdict)}</b> {html.escape(self.reason or '')} <small>{html.escape(summary)}</small></p>"]
        for finding in self.findings:
            parts.append(
                f"<details><summary><b>{html.escape(finding.severity)}</b> <code>{html.escape(finding.rule)}</code> "
                f"{html.escape(finding.message)}</summary><pre>{html.escape(str(finding))}</pre></details>"
            )
        return "".join(parts)


def _frame(value: Dict[str, Any]) -> Frame:
    return Frame(
        value["module"],
        int(value["offset"] or "0", 16),
        value["function"],
        value["file"],
        value["line"],
        value.get("program", False),
    )


def _location(value: Dict[str, Any]) -> Location:
    return Location(
        value["host"],
        value["pid"],
        value["executable"],
        value["tid"],
        value["time_ns"],
        value["function"],
        value["call"],
        tuple(_frame(frame) for frame in value["stack"]),
    )


def _finding(value: Dict[str, Any]) -> Finding:
    same = ("rule", "severity", "message", "advice", "count", "size", "kind", "fingerprint", "identity", "fails")
    return Finding(
        location=_location(value["process"]),
        other=_location(value["other"]) if value["other"] is not None else None,
        **{name: value[name] for name in same},
    )


def parse(text: str) -> Report:
    """The report that ``--format json`` printed."""
    raw = json.loads(text)
    names = ("pid", "host", "executable", "calls", "ipc_calls", "ended")
    return Report(
        verdict=raw["verdict"],
        reason=raw["reason"],
        findings=tuple(_finding(finding) for finding in raw["findings"]),
        processes=tuple(Process(**{name: process[name] for name in names}) for process in raw["processes"]),
        calls=raw["calls"],
        raw=raw,
    )


def check(
    *traces: Union[str, "PathLike[str]"],
    fail_on: str = "warning",
    suppressions: Optional[Union[str, "PathLike[str]"]] = None,
) -> Report:
    """Analyzes traces, as ``urscope check`` does. All of them together are one run.

    Parameters
    ----------
    *traces : path
        Trace files, or directories that hold some.
    fail_on : str
        The lowest severity that makes the verdict ``"findings"``: ``"error"``, ``"warning"`` or ``"note"``.
    suppressions : path, optional
        A file of known findings, which then do not count.

    Raises
    ------
    RuntimeError
        If the traces could not be analyzed, with what the command says.
    FileNotFoundError
        If the command ``urscope`` is not there.
    """
    arguments: List[str] = [str(command_path()), "check", "--format", "json", "--fail-on", fail_on]
    if suppressions is not None:
        arguments += ["--suppressions", fspath(suppressions)]
    arguments += ["--", *(fspath(trace) for trace in traces)]
    ended = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not ended.stdout:
        raise RuntimeError(ended.stderr.strip() or f"urscope check ended with {ended.returncode} and said nothing")
    return parse(ended.stdout)
