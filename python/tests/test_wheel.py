"""The wheel and the tarball that scripts/make-wheel.py makes, here from small files in the place of the programs."""

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
#: In the place of the command.
COMMAND = '#!/bin/sh\necho "the command was given $*"\n'


def made(folder):
    """The wheel and the tarball, made in a new folder."""
    programs = folder / "urscope"
    programs.mkdir(parents=True)
    (programs / "urscope").write_text(COMMAND)
    for name in ("liburscope.so", "libze_loader.so", "liburscope_ipc.so"):
        (programs / name).write_bytes(name.encode() * 1000)
    (folder / "THIRD-PARTY.txt").write_text("The licences of others.\n")
    subprocess.run([sys.executable, ROOT / "scripts/make-wheel.py", folder], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    (tarball,) = folder.glob("*.tar.gz")
    return wheel, tarball


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="urscope-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.wheel, cls.tarball = made(cls.folder / "first")

    def test_the_same_files_give_the_same_bytes(self):
        again = self.folder / "again"
        before = os.umask(0o077)
        try:
            wheel, tarball = made(again)
        finally:
            os.umask(before)
        self.assertEqual(wheel.read_bytes(), self.wheel.read_bytes())
        self.assertEqual(tarball.read_bytes(), self.tarball.read_bytes())
        (again / "urscope/liburscope.so").write_bytes(b"another")
        subprocess.run([sys.executable, ROOT / "scripts/make-wheel.py", again], check=True, stdout=subprocess.DEVNULL)
        self.assertNotEqual(wheel.read_bytes(), self.wheel.read_bytes())

    def test_the_record_lists_every_file(self):
        with zipfile.ZipFile(self.wheel) as archive:
            (record,) = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
            rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
            self.assertEqual([name for name, _, _ in rows], archive.namelist())
            self.assertEqual(rows[-1], [record, "", ""])
            for name, digest, size in rows[:-1]:
                content = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={expected}", str(len(content))), name)

    def test_what_it_says_of_itself_names_files_that_are_there(self):
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
            lines = archive.read(name).decode().partition("\n\n")[0].splitlines()
            licences = [line.partition(": ")[2] for line in lines if line.startswith("License-File: ")]
            self.assertIn("THIRD-PARTY.txt", licences)
            for licence in licences:
                self.assertTrue(archive.read(name.replace("METADATA", f"licenses/{licence}")))

    def test_it_is_installed_without_a_network(self):
        place = self.folder / "venv"
        venv.create(place, symlinks=True)
        python = place / "bin/python"
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}

        def run(*arguments):
            return subprocess.run(arguments, check=True, capture_output=True, text=True, cwd=place, env=environment).stdout

        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", self.wheel)
        self.assertEqual(run(place / "bin/urscope", "check", "traces"), "the command was given check traces\n")
        self.assertEqual(run(python, "-m", "urscope", "doctor"), "the command was given doctor\n")
        program = "import urscope; from importlib.metadata import entry_points as e; print(urscope.__file__, *e(group='pytest11'))"
        said = run(python, "-c", program)
        self.assertTrue(said.startswith(str(place)), said)
        self.assertIn("urscope.pytest_plugin", said)
        run(sys.executable, "-m", "pip", "--python", python, "uninstall", "--quiet", "--yes", "urscope")
        left = [path for path in (place / "lib").rglob("*urscope*") if path.name != "__pycache__"]
        self.assertEqual(left, [])

    def test_the_tarball_works_where_it_is_unpacked(self):
        place = self.folder / "unpacked"
        with tarfile.open(self.tarball) as archive:
            members = archive.getmembers()
            archive.extractall(place, filter="data")
        self.assertEqual({(member.uid, member.gid, member.mtime) for member in members}, {(0, 0, 0)})
        (top,) = place.iterdir()
        names = {path.name for path in top.iterdir()}
        self.assertEqual(
            names,
            {"urscope", "liburscope.so", "libze_loader.so", "liburscope_ipc.so", "python"}
            | {"LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"},
        )
        environment = {**os.environ, "PYTHONPATH": str(top / "python")}
        ended = subprocess.run([sys.executable, "-m", "urscope", "holders"], capture_output=True, text=True, env=environment)
        self.assertEqual(ended.stdout, "the command was given holders\n", ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
