"""The command from Python: `python -m urscope`, `urscope.check`, and the plugin of pytest."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import urscope
from urscope._command import command_path

HERE = Path(__file__).parent

TESTS = '''
import dpctl, os, pytest
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle

@pytest.fixture
def handle():
    with IPCMemoryHandle(MemoryUSMDevice(4096, queue=dpctl.SyclQueue())) as handle:
        yield handle

@pytest.mark.parametrize("word", ["a b", "c"])
def test_correct(handle, word):
    assert handle.to_bytes()

def test_wrong(handle):
    with pytest.raises(RuntimeError):
        IPCMemoryHandle.open(handle.to_bytes()[:-8], dpctl.SyclDevice(), 64)

def test_without_the_runtime():
    pass

def test_failing():
    assert 1 == 2

@pytest.mark.skip(reason="on purpose")
def test_skipped():
    pass

def test_dying():
    os._exit(3)
'''


def run(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


class Tools(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="urscope-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def traced(self, mistake):
        traces = self.folder / mistake
        traces.mkdir()
        ended = run(
            "-m", "urscope", "run", "--device", "software", "--dir", str(traces), str(HERE / "mistakes.py"), mistake
        )
        return traces, ended

    def test_a_script_is_run_and_its_traces_are_checked(self):
        traces, ended = self.traced("leaked-mapping")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        report = urscope.check(traces)
        self.assertEqual((report.verdict, len(report), len(report.processes)), ("findings", 1, 2))
        self.assertEqual(report.calls["urIPCOpenMemHandleExp"], 1)
        finding = report[0]
        self.assertIsInstance(finding, urscope.Finding)
        self.assertEqual((finding.rule, finding.severity, finding.fails), ("leaked-mapping", "warning", True))
        self.assertIn(finding.location.pid, [process.pid for process in report.processes])
        functions = [frame.function for frame in finding.location.stack]
        self.assertIn("DPCTLIPCMem_OpenHandle", functions)
        self.assertIn("leaked-mapping", str(finding))
        # A person sees the program's own lines first, and only them.
        shown = [line.strip() for line in str(finding).splitlines() if line.startswith("        at ")]
        self.assertRegex(shown[0], r"^at exit_with_mapping \(.*/mistakes\.py:\d+\)$")
        self.assertTrue(all(re.search(r"(/mistakes\.py|<string>):\d+\)$", line) for line in shown), shown)
        self.assertIn("<code>leaked-mapping</code>", report._repr_html_())
        self.assertEqual(urscope.check(traces, fail_on="error").verdict, "clean")
        try:
            import pandas
        except ImportError:
            with self.assertRaises(ImportError):
                report.to_pandas()
        else:
            self.assertIsInstance(report.to_pandas(), pandas.DataFrame)

    def test_what_cannot_be_analyzed_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "nowhere"):
            urscope.check(self.folder / "nowhere")

    def test_the_command_keeps_its_output_and_its_exit_code(self):
        ended = run("-m", "urscope", "explain", "leaked-mapping")
        self.assertEqual(ended.returncode, 0)
        self.assertIn("leaked-mapping", ended.stdout)
        self.assertEqual(run("-m", "urscope", "run", "--no-shim", "--no-check", "-m", "this").returncode, 0)
        self.assertEqual(run("-m", "urscope", "run", "--no-shim", "--no-check", "--", "/bin/sh", "-c", "exit 7").returncode, 7)

    def test_only_a_first_word_is_a_script_of_python(self):
        script = self.folder / "x.py"
        script.write_text("import sys; print(sys.executable, sys.argv[1:])")
        for program, printed in (
            ([script, "a", "-b"], f"{sys.executable} ['a', '-b']"),
            (["--", script], f"{sys.executable} []"),
            ([sys.executable, script, "fixed"], f"{sys.executable} ['fixed']"),
            (["echo", "python", "x.py"], "python x.py"),
        ):
            ended = run("-m", "urscope", "-q", "run", "--no-shim", "--no-check", *map(str, program), cwd=self.folder)
            self.assertEqual((ended.returncode, ended.stdout), (0, printed + "\n"), ended.stderr)

    def test_without_dpctl_the_tools_work(self):
        program = "import sys; sys.modules['dpctl'] = None; import urscope; print(urscope.check)"
        self.assertEqual(run("-c", program).returncode, 0)

    def test_pytest_leaves_nothing_compiled_in_the_package(self):
        package = self.folder / "site/urscope"
        shutil.copytree(HERE.parent / "urscope", package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / "native").symlink_to(command_path().parent)
        environment = {**os.environ, "PYTHONPATH": f"{package.parent}:{os.environ['PYTHONPATH']}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        tests = ["-m", "pytest", "-p", "urscope.pytest_plugin", "-p", "no:cacheprovider", "-q"]
        ended = run(*tests, cwd=self.folder, env=environment)
        self.assertEqual(ended.returncode, 5, ended.stdout + ended.stderr)  # there is no test
        compiled = [path.name for path in package.glob("__pycache__/*.pyc")]
        self.assertTrue(compiled)
        self.assertFalse([name for name in compiled if "-pytest-" in name])

    def test_pytest_fails_a_test_with_its_finding(self):
        (self.folder / "test_it.py").write_text(TESTS)
        # pytest-xdist distributes the tests over two processes.
        ended = run(
            *["-m", "pytest", "-p", "urscope.pytest_plugin", "--urscope", "--urscope-device", "software"],
            *["-p", "no:cacheprovider", "-rA", "-q", "-n", "2", "test_it.py"],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "200"},
        )
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        shown = ended.stdout.partition("error: size-mismatch: ")[2].splitlines()
        self.assertRegex(shown[2], r"^ +at test_wrong \(.*/test_it\.py:\d+\)$")
        summary = ended.stdout.rpartition("short test summary info")[2].splitlines()
        for expected in (
            "PASSED test_it.py::test_correct[a b]",
            "PASSED test_it.py::test_correct[c]",
            "PASSED test_it.py::test_without_the_runtime",
            "FAILED test_it.py::test_wrong - error: size-mismatch",
            "FAILED test_it.py::test_failing - assert 1 == 2",
            "FAILED test_it.py::test_dying - the process of the test ended with 3",
            "SKIPPED [1] test_it.py:",
            "3 failed, 3 passed, 1 skipped",
        ):
            self.assertTrue(any(line.startswith(expected) for line in summary), f"{expected}:\n{ended.stdout}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
