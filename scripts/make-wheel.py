"""Makes the wheel and the tarball from the files that scripts/package has built, byte for byte the same each time.

    python3 scripts/make-wheel.py FOLDER

FOLDER/urscope holds the command and the libraries, FOLDER/THIRD-PARTY.txt the licences of what is linked into them. The wheel holds no code for a certain Python, so one serves all of them.
"""

import base64
import gzip
import hashlib
import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = "py3-none-manylinux_2_28_x86_64"
#: The earliest time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)
COMMAND = "urscope"


def version():
    manifest = (ROOT / "Cargo.toml").read_text()
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', manifest, re.MULTILINE)
    package = re.search(r'^__version__ = "([^"]+)"', (ROOT / "python/urscope/__init__.py").read_text(), re.MULTILINE)
    assert found and package and found[1] == package[1], "Cargo.toml and python/urscope/__init__.py name other versions"
    return found[1]


def metadata(number):
    return f"""\
Metadata-Version: 2.4
Name: urscope
Version: {number}
Summary: Finds mistakes in how SYCL programs share GPU memory between processes, and shares it from Python
License-Expression: Apache-2.0 OR MIT
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
License-File: THIRD-PARTY.txt
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.10
Provides-Extra: dpctl
Requires-Dist: dpctl>=0.20; extra == "dpctl"
Description-Content-Type: text/markdown

{(ROOT / "docs/python.md").read_text()}"""


def package_files():
    """The Python package and its types: pairs of name and content."""
    for path in sorted((ROOT / "python/urscope").glob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"urscope/{path.name}", path.read_bytes()


def native_files(folder):
    for path in sorted((folder / "urscope").iterdir()):
        yield f"urscope/native/{path.name}", path.read_bytes()


def licences(folder):
    for path in (ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", folder / "THIRD-PARTY.txt"):
        yield path.name, path.read_bytes()


def mode(name):
    return 0o755 if Path(name).name == COMMAND else 0o644


def wheel(folder, number):
    info = f"urscope-{number}.dist-info"
    files = [*package_files(), *native_files(folder)]
    files += [(f"{info}/licenses/{name}", content) for name, content in licences(folder)]
    files += [
        (f"{info}/METADATA", metadata(number).encode()),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: urscope\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()),
        (
            f"{info}/entry_points.txt",
            b"[console_scripts]\nurscope = urscope.__main__:main\n\n[pytest11]\nurscope = urscope.pytest_plugin\n",
        ),
    ]
    record = ""
    for name, content in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))

    path = folder / f"urscope-{number}-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100000 | mode(name)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)
    return path


def tarball(folder, number):
    """A folder that works wherever it lies: the command with its libraries, and the Python package beside them."""
    top = f"urscope-{number}-x86_64-linux"
    files = [(f"{top}/{path.name}", path.read_bytes()) for path in sorted((folder / "urscope").iterdir())]
    files += [(f"{top}/{name}", content) for name, content in licences(folder)]
    files += [(f"{top}/python/{name}", content) for name, content in package_files()]
    bytes_of = io.BytesIO()
    with tarfile.open(fileobj=bytes_of, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode(name)
            archive.addfile(entry, io.BytesIO(content))
    path = folder / f"{top}.tar.gz"
    path.write_bytes(gzip.compress(bytes_of.getvalue(), 9, mtime=0))
    return path


def main():
    folder = Path(sys.argv[1])
    number = version()
    for old in [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]:
        old.unlink()
    for path in (wheel(folder, number), tarball(folder, number)):
        size = sum(file.stat().st_size for file in (folder / "urscope").iterdir())
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} MB of programs unpacked, sha256 {digest}")


if __name__ == "__main__":
    main()
