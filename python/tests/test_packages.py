"""The wheel, the tarball and the Debian package that scripts/packages/make_packages.py makes, here from small files in the place of the programs."""

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
import venv
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
#: In the place of the command.
COMMAND = """\
#!/bin/sh
case $1 in
  man) mkdir -p "$2" && echo "the manual" >"$2/urscope.1" && echo "of run" >"$2/urscope-run.1" ;;
  *) echo "the command was given $*" ;;
esac
"""
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def made(folder):
    """The wheel, the tarball and the Debian package, made in a new folder."""
    programs = folder / "urscope"
    programs.mkdir(parents=True)
    (programs / "urscope").write_text(COMMAND)
    (programs / "urscope").chmod(0o755)
    for name in ("liburscope.so", "libze_loader.so", "liburscope_cuda.so", "liburscope_ipc.so"):
        (programs / name).write_bytes(name.encode() * 1000)
    (folder / "THIRD-PARTY.txt").write_text("The licences of others.\n")
    make(folder)
    return [next(folder.glob(pattern)) for pattern in ("*.whl", "*.tar.gz", "*.deb")]


def make(folder):
    subprocess.run([sys.executable, ROOT / "scripts/packages/make_packages.py", folder], check=True, stdout=subprocess.DEVNULL)


def run(*arguments, **options):
    """What a command writes, without the package of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}
    environment.update(options.pop("env", {}))
    ended = subprocess.run(arguments, capture_output=True, text=True, env=environment, **options)
    assert ended.returncode == 0, f"{arguments} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def as_root(*arguments):
    """Runs a command that changes owners: in a user namespace, where this user has not the rights of root."""
    return run(*([] if os.geteuid() == 0 else ["unshare", "--map-root-user"]), *arguments)


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="urscope-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.wheel, cls.tarball, cls.debian = made(cls.folder / "first")

    def test_the_same_files_give_the_same_bytes(self):
        again = self.folder / "again"
        before = os.umask(0o077)
        try:
            packages = made(again)
        finally:
            os.umask(before)
        first = [self.wheel, self.tarball, self.debian]
        for package, other in zip(packages, first, strict=True):
            self.assertEqual(package.read_bytes(), other.read_bytes(), package.name)
        (again / "urscope/liburscope.so").write_bytes(b"another")
        make(again)
        for package, other in zip(packages, first, strict=True):
            self.assertNotEqual(package.read_bytes(), other.read_bytes(), package.name)

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

    def test_it_is_installed_without_a_network_and_uninstalled_without_a_trace(self):
        place = self.folder / "venv"
        venv.create(place, symlinks=True)
        before = files_below(place)
        python = place / "bin/python"
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", self.wheel)
        given = f"the command was given --interpreter {python} check traces\n"
        self.assertEqual(run(place / "bin/urscope", "check", "traces"), given)
        self.assertEqual(run(python, "-m", "urscope", "doctor"), f"the command was given --interpreter {python} doctor\n")
        program = "import urscope; from importlib.metadata import entry_points as e; print(urscope.__file__, *e(group='pytest11'))"
        said = run(python, "-c", program, cwd=place)
        self.assertTrue(said.startswith(str(place)), said)
        self.assertIn("urscope.pytest_plugin", said)
        run(sys.executable, "-m", "pip", "--python", python, "uninstall", "--quiet", "--yes", "urscope")
        self.assertEqual(files_below(place), before)

    def test_the_tarball_is_a_tree(self):
        place = self.folder / "unpacked"
        with tarfile.open(self.tarball) as archive:
            members = archive.getmembers()
            archive.extractall(place)
        self.assertEqual({(member.uid, member.gid, member.uname, member.mtime) for member in members}, {(0, 0, "root", 315532800)})
        self.assertEqual({oct(member.mode) for member in members if not member.issym()}, {"0o755", "0o644"})
        (top,) = place.iterdir()
        expected = {
            "bin/urscope": "the command was given",
            "lib/urscope/liburscope.so": "liburscope.so",
            "lib/urscope/libze_loader.so": "libze_loader.so",
            "lib/urscope/device/libze_loader.so": "libze_loader.so",
            "lib/urscope/device/libze_loader.so.1": "libze_loader.so",
            "lib/urscope/liburscope_cuda.so": "liburscope_cuda.so",
            "lib/urscope/liburscope_ipc.so": "liburscope_ipc.so",
            "lib/urscope/python/urscope/py.typed": "",
            "lib/cmake/urscope/urscope-config.cmake": "function(urscope_add_test)",
            "lib/cmake/urscope/urscope-config-version.cmake": f'set(PACKAGE_VERSION "{VERSION}")',
            "lib/pkgconfig/urscope.pc": f"Version: {VERSION}",
            f"share/modulefiles/urscope/{VERSION}": "prepend-path PATH",
            f"share/modulefiles/urscope/{VERSION}.lua": 'prepend_path("PATH"',
            "share/man/man1/urscope-run.1": "of run",
            "share/bash-completion/completions/urscope": "the command was given completions bash",
            "share/zsh/site-functions/_urscope": "the command was given completions zsh",
            "share/fish/vendor_completions.d/urscope.fish": "the command was given completions fish",
            "share/doc/urscope/LICENSE-APACHE": "Apache License",
            "share/doc/urscope/LICENSE-MIT": "the urscope authors",
            "share/doc/urscope/THIRD-PARTY.txt": "The licences of others.",
        }
        for name, content in expected.items():
            text = (top / name).read_text()
            self.assertIn(content, text, name)
            self.assertNotRegex(text, "@[A-Z]+@", name)
        # The package finds the command and the libraries of its tree.
        path = {"PYTHONPATH": str(top / "lib/urscope/python")}
        self.assertEqual(run(sys.executable, "-m", "urscope", "holders", env=path), f"the command was given --interpreter {sys.executable} holders\n")
        program = "from urscope._command import native_file as f; print(f('liburscope_ipc.so', ''))"
        self.assertEqual(Path(run(sys.executable, "-c", program, env=path).strip()), (top / "lib/urscope/liburscope_ipc.so").resolve())

    def test_dpkg_installs_it_and_removes_all_of_it(self):
        root = self.folder / "root"
        # What dpkg needs of a system, and a file of another package in a folder that both use.
        for folder in ("info", "parts", "triggers", "updates"):
            (root / "var/lib/dpkg" / folder).mkdir(parents=True)
        for file in ("available", "status"):
            (root / "var/lib/dpkg" / file).touch()
        (root / "usr/lib/python3/dist-packages").mkdir(parents=True)
        (root / "usr/lib/python3/dist-packages/other.py").touch()
        dpkg = ("dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null")
        outside = [name for name in files_below(root) if not name.startswith("var/")]
        as_root(*dpkg, "--install", self.debian)
        self.assertEqual(run(root / "usr/bin/urscope", "check"), "the command was given check\n")
        packages = root / "usr/lib/python3/dist-packages"
        path = {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": ""}
        self.assertEqual(run(sys.executable, "-m", "urscope", "top", env=path), f"the command was given --interpreter {sys.executable} top\n")
        self.assertTrue((root / "usr/lib/urscope/python/urscope/__pycache__").is_dir(), "Python compiles nothing here")
        self.assertTrue((root / "usr/share/man/man1/urscope-run.1.gz").is_file())
        self.assertEqual(as_root(*dpkg, "--verify", "urscope"), "")
        as_root(*dpkg, "--remove", "urscope")
        self.assertEqual([name for name in files_below(root) if not name.startswith("var/")], outside)
        self.assertNotIn("urscope", (root / "var/lib/dpkg/status").read_text())

    def test_the_debian_package_is_what_dpkg_expects(self):
        fields = run("dpkg-deb", "--field", self.debian, "Package", "Version", "Architecture", "Depends")
        expected = f"Package: urscope\nVersion: {VERSION}\nArchitecture: amd64\nDepends: libc6 (>= 2.28)\n"
        self.assertEqual(fields, expected)
        lines = run("dpkg-deb", "--contents", self.debian).splitlines()
        self.assertEqual({line.split()[1] for line in lines}, {"root/root"})
        self.assertFalse([line for line in lines if "modulefiles" in line])


class Recipes(unittest.TestCase):
    """The files in `packaging` that others' tools read."""

    SPACK = ROOT / "packaging/spack/spack_repo/urscope/packages/urscope/package.py"

    def test_the_recipe_for_spack_builds_what_the_packages_have(self):
        """Spack itself is not here: what it gives to a recipe is noted instead."""
        noted = {}
        commands = []

        def directive(name):
            return lambda *values, **options: noted.setdefault(name, []).append((*values, *options.values()))

        package = types.ModuleType("spack.package")
        for name in ("license", "version", "depends_on", "requires"):
            setattr(package, name, directive(name))
        package.run_after = lambda phase: lambda function: function
        package.which = lambda name, required: lambda *arguments: commands.append((name, *arguments))
        package.install_tree = lambda *arguments: commands.append(("install_tree", *arguments))
        package.make_jobs = 2
        generic = types.ModuleType("generic")
        generic.Package = object
        modules = {"spack": types.ModuleType("spack"), "spack.package": package}
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
            modules[name] = types.ModuleType(name)
        modules["spack_repo.builtin.build_systems.generic"] = generic
        with mock.patch.dict(sys.modules, modules):
            content = {"__file__": str(self.SPACK)}
            exec(compile(self.SPACK.read_text(), self.SPACK, "exec"), content)

        self.assertEqual(content["Urscope"].git, ROOT.as_uri())
        self.assertIn((VERSION, f"v{VERSION}"), noted["version"])
        manifest = (ROOT / "Cargo.toml").read_text()
        rust = re.search(r'^rust-version = "(.*)"$', manifest, re.MULTILINE)[1]
        self.assertIn((f"rust@{rust}:", "build"), noted["depends_on"])
        self.assertEqual(noted["license"], [(re.search(r'^license = "(.*)"$', manifest, re.MULTILINE)[1],)])

        content["Urscope"]().install(None, "/prefix")
        (cargo, *arguments), (python, script, programs, tree), install = commands
        self.assertEqual((cargo, python, programs), ("cargo", "python3", "target/release"))
        self.assertTrue((ROOT / script).is_file())
        self.assertEqual(install, ("install_tree", tree, "/prefix"))
        built = set(re.findall(r"-p (urscope-\S+)", (ROOT / "scripts/packages/build").read_text()))
        self.assertEqual({name for name in arguments if name.startswith("urscope-")}, built)

    def test_the_recipe_for_conda_builds_what_the_packages_have(self):
        text = (ROOT / "packaging/conda/recipe.yaml").read_text()
        self.assertEqual(re.findall(r'^  version: "(.*)"$', text, re.MULTILINE), [VERSION])
        rust = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
        self.assertIn(f'${{{{ compiler("rust") }}}} >={rust}', text)
        built = set(re.findall(r"-p (urscope-\S+)", (ROOT / "scripts/packages/build").read_text()))
        self.assertEqual(set(re.findall(r"--package (urscope-\S+)", text)), built)

    def test_the_container_file_installs_this_version(self):
        text = (ROOT / "packaging/Containerfile").read_text()
        self.assertEqual(re.findall(r"^ARG VERSION=(.*)$", text, re.MULTILINE), [VERSION])
        self.assertIn('"/packages/urscope_${VERSION}_amd64.deb"', text)


class Release(unittest.TestCase):
    """The steps of .github/workflows/release.yml, with small files in the place of the programs."""

    def release(self, *arguments):
        return subprocess.run([ROOT / "scripts/packages/release", *arguments], capture_output=True, text=True)

    def test_every_place_names_the_version(self):
        checked = self.release("check", f"v{VERSION}")
        if checked.returncode:
            # Before a release only the changelog lacks it.
            self.assertIn("CHANGELOG.md has no section", checked.stderr)
        self.assertIn("instead of 99.0.0", self.release("check", "v99.0.0").stderr)

    def test_the_documents_say_whether_there_is_a_release(self):
        with tempfile.TemporaryDirectory() as folder:
            copies = [Path(folder) / name for name in ("README.md", "docs/install.md", "scripts/packages/release")]
            for copy in copies:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / copy.relative_to(folder), copy)
            before = [copy.read_text() for copy in copies]
            run(copies[2], "documents")
            after = [copy.read_text() for copy in copies]
            run(copies[2], "documents")
            self.assertEqual([copy.read_text() for copy in copies], after)
        for old, new in zip(before[:2], after[:2]):
            self.assertIn("There is no release yet.", old)
            self.assertNotIn("no release yet", new)
            self.assertIn("Releases are on [PyPI]", new)

    def test_what_is_published_has_sums_and_a_bill_of_materials(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            self.assertIn("instead of 3", self.release("collect", folder / "out", folder).stderr)
            packages = made(folder / "made")
            (folder / "made/debug").mkdir()
            collected = self.release("collect", folder / "out", folder / "made")
            self.assertEqual(collected.returncode, 0, collected.stderr)
            run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder / "out")
            names = {path.name for path in (folder / "out").iterdir()}
            expected = {"SHA256SUMS", "debug-information.tar.xz", "urscope.cdx.json", *(package.name for package in packages)}
            self.assertEqual(names, expected)
            bill = json.loads((folder / "out/urscope.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["version"]), ("CycloneDX", VERSION))
        crates = {part["name"]: part for part in bill["components"]}
        self.assertGreater(len(crates), 100)
        self.assertEqual(crates["serde_json"]["hashes"][0]["alg"], "SHA-256")
        self.assertNotIn("urscope-schema", crates)

    def test_the_workflow_runs_what_there_is(self):
        text = (ROOT / ".github/workflows/release.yml").read_text()
        scripts = set(re.findall(r"\bscripts/\S+", text))
        self.assertGreaterEqual(scripts, {"scripts/packages/build", "scripts/packages/release"})
        for script in scripts:
            self.assertTrue(os.access(ROOT / script, os.X_OK), script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
