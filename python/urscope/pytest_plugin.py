"""``pytest --urscope``: each test runs in a process of its own under urscope, and fails with what urscope finds.

pytest itself is not traced. For each test it starts ``urscope run -- python -m pytest TEST``; the test's own result comes back in a
file, and its findings are added to the result of its call. So a test may start processes, and tests may run side by side with
pytest-xdist. Fixtures of a larger scope are made once for each test.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from ._command import command_path
from .findings import Report, parse


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("urscope")
    group.addoption("--urscope", action="store_true", help="run each test under urscope, and fail it with its findings")
    group.addoption("--urscope-device", metavar="DEVICE", help="the device for `urscope run`: software, or the machine's own")
    group.addoption(
        "--urscope-fail-on",
        metavar="SEVERITY",
        choices=["error", "warning", "note"],
        default="warning",
        help="the lowest severity of a finding that fails a test (default: warning)",
    )
    group.addoption("--urscope-reports-to", metavar="FILE", help="for urscope's own use")


def pytest_configure(config: pytest.Config) -> None:
    to_file: Optional[str] = config.getoption("--urscope-reports-to")
    if to_file is not None:
        config.pluginmanager.register(_Sender(config, Path(to_file)))
    elif config.getoption("--urscope") and not _is_xdist_controller(config):
        config.pluginmanager.register(_Runner(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes what pytest has compiled of this package, under names of its own: pip would leave it behind at an uninstall."""
    if config.getoption("--urscope-reports-to") is not None:
        return
    for compiled in Path(__file__).parent.glob("__pycache__/*-pytest-*.pyc"):
        with contextlib.suppress(OSError):
            compiled.unlink()


def _is_xdist_controller(config: pytest.Config) -> bool:
    """The process that distributes the tests runs none itself."""
    distributes = config.getoption("dist", "no") != "no" or bool(config.getoption("numprocesses", None))
    return distributes and not hasattr(config, "workerinput")


class _Sender:
    """In the process of a test: writes the reports of the test to a file, a line each."""

    def __init__(self, config: pytest.Config, to_file: Path) -> None:
        self._config = config
        self._file = to_file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        value = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._file.open("a") as file:
            file.write(json.dumps(value, default=str) + "\n")


class _Runner:
    """In pytest: runs each test in a process of its own."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports(self, item: pytest.Item) -> List[pytest.TestReport]:
        with tempfile.TemporaryDirectory(prefix="urscope-pytest-") as folder:
            sent, judged = Path(folder, "reports"), Path(folder, "judgement")
            ended = subprocess.run(
                self._command(item, folder, sent, judged),
                cwd=self._config.invocation_params.dir,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            )
            lines = sent.read_text().splitlines() if sent.exists() else []
            reports = [self._received(json.loads(line)) for line in lines]
            if not any(report.when == "teardown" for report in reports):
                why = f"the process of the test ended with {ended.returncode} before the test was over"
                return [*reports, _failure(item, f"{why}\n{ended.stdout}{ended.stderr}")]
            if not judged.exists():
                return [*reports, _failure(item, f"urscope run wrote no report:\n{ended.stderr}")]
            return _with_findings(reports, parse(judged.read_text()))

    def _received(self, value: Dict[str, Any]) -> pytest.TestReport:
        report: pytest.TestReport = self._config.hook.pytest_report_from_serializable(config=self._config, data=value)
        # JSON has no tuples, and where and why a test was skipped is one.
        place: Any = report.longrepr
        if isinstance(place, list):
            report.longrepr = (place[0], place[1], place[2])
        return report

    def _command(self, item: pytest.Item, folder: str, sent: Path, judged: Path) -> List[str]:
        device: Optional[str] = self._config.getoption("--urscope-device")
        traces = Path(folder, "traces")
        traces.mkdir()
        run = [str(command_path()), "run", "--dir", str(traces), "--format", "json", "--report", str(judged)]
        run += ["--fail-on", self._config.getoption("--urscope-fail-on")]
        run += [] if device is None else ["--device", device]
        test = [sys.executable, "-m", "pytest", "--urscope-reports-to", str(sent), "-p", "no:cacheprovider"]
        # The plugin is found by its entry point where the package is installed, and must be named elsewhere.
        test += [] if _is_installed() else ["-p", __name__]
        test += ["-p", "no:xdist"] if self._config.pluginmanager.hasplugin("xdist") else []
        test += ["--rootdir", str(self._config.rootpath)]
        test += [] if self._config.inipath is None else ["-c", str(self._config.inipath)]
        return [*run, "--", *test, f"{item.path}::{item.nodeid.partition('::')[2]}"]


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    points: Any = entry_points()
    found = points.select(group="pytest11") if hasattr(points, "select") else points.get("pytest11", [])
    return any(point.value == __name__ for point in found)


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")


def _with_findings(reports: List[pytest.TestReport], judgement: Report) -> List[pytest.TestReport]:
    """Fails the report of the call for the findings that count. A test that failed anyway shows them as a section."""
    text = "\n\n".join(str(finding) for finding in judgement if finding.fails)
    if text:
        for report in reports:
            if report.when == "call":
                if report.outcome == "passed":
                    report.outcome = "failed"
                    report.longrepr = text
                else:
                    report.sections.append(("urscope", text))
    return reports
