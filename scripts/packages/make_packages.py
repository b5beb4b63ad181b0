"""Makes the wheel, the tarball and the Debian package from the files that scripts/packages/build has built, byte for byte the same each
time. It needs dpkg-deb.

    python3 scripts/packages/make_packages.py FOLDER

FOLDER/urscope holds the command and the libraries, FOLDER/THIRD-PARTY.txt the licences of what is linked into them. The wheel holds no code
for a certain Python, so one serves all of them. All files have the time SOURCE_DATE_EPOCH, in seconds since 1970, or else the earliest that a
zip file can hold.
"""

import base64
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from stage_tree import COMMAND, LIBRARIES, SUMMARY, licences, metadata, python_package, stage, version, write

TAG = "py3-none-manylinux_2_28_x86_64"
#: 1980-01-01, the earliest time of a zip file.
EARLIEST = 315532800
TIME = max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)))
GLIBC = "2.28"


def wheel(folder, number):
    info = f"urscope-{number}.dist-info"
    files = list(python_package())
    files += [(f"urscope/native/{name}", (folder / "urscope" / name).read_bytes()) for name in (*LIBRARIES, COMMAND)]
    files += [(f"{info}/licenses/{name}", content) for name, content in licences(folder / "THIRD-PARTY.txt")]
    files += [(f"{info}/{name}", content) for name, content in metadata(number)]
    files.append((f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: urscope\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()))
    record = ""
    for name, content in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))

    path = folder / f"urscope-{number}-{TAG}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, time.gmtime(TIME)[:6])
            mode = 0o755 if Path(name).name == COMMAND else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)
    return path


def tarball(folder, number):
    """The tree, which works wherever it lies. Its files belong to root."""
    top = Path(f"urscope-{number}-x86_64-linux")
    tree = folder / "tree"
    made = io.BytesIO()

    def fixed(entry):
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = TIME, 0, 0, "root", "root"
        return entry

    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in (tree, *sorted(tree.rglob("*"))):
            archive.add(path, str(top / path.relative_to(tree)), recursive=False, filter=fixed)
    path = folder / f"{top}.tar.gz"
    path.write_bytes(gzip.compress(made.getvalue(), 9, mtime=0))
    return path


COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: urscope

Files: *
Copyright: 2026 the urscope authors
License: Apache-2.0 or MIT
 The texts are LICENSE-APACHE and LICENSE-MIT in this folder. THIRD-PARTY.txt has those of what is linked into the programs.
"""
#: What Python compiles while the package is in use belongs to no package.
BEFORE_REMOVAL = """\
#!/bin/sh
set -e
rm -rf "$DPKG_ROOT/usr/lib/urscope/python/urscope/__pycache__"
"""


def debian_tree(folder, number):
    """The tree below /usr, as Debian has it: manuals compressed, Python's package where python3 finds it, and no modulefiles, because
    the command is in PATH anyway."""
    root = folder / "debian"
    usr = root / "usr"
    shutil.copytree(folder / "tree", usr, symlinks=True)
    shutil.rmtree(usr / "share/modulefiles")
    for manual in (usr / "share/man").glob("man*/*"):
        write(manual.with_name(f"{manual.name}.gz"), gzip.compress(manual.read_bytes(), 9, mtime=0))
        manual.unlink()
    # Debian's zsh looks in another folder for what packages bring.
    (usr / "share/zsh/site-functions").rename(usr / "share/zsh/vendor-completions")
    write(usr / "share/doc/urscope/copyright", COPYRIGHT.encode())
    for link in ("urscope", f"urscope-{number}.dist-info"):
        place = usr / "lib/python3/dist-packages" / link
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(f"../../urscope/python/{link}")
    return root


def debian_control(root, number):
    """The text that describes the package to dpkg."""
    paths = [path for path in root.rglob("*") if not path.is_symlink()]
    size = sum(1 if path.is_dir() else -(-path.stat().st_size // 1024) for path in paths)
    return f"""\
Package: urscope
Version: {number}
Architecture: amd64
Maintainer: The urscope authors <packages@urscope.invalid>
Installed-Size: {size}
Depends: libc6 (>= {GLIBC})
Recommends: python3 (>= 3.10)
Section: devel
Priority: optional
Description: {SUMMARY}
 urscope records the calls by which processes share memory and events, through
 SYCL's Unified Runtime, Level Zero and the CUDA driver, and judges those of all
 processes together. Programs are not rebuilt. Without a GPU they run on a
 software device, but for programs of the CUDA runtime.
"""


def debian_package(folder, number):
    """Made by dpkg-deb(1). Several threads would write other bytes than one."""
    root = debian_tree(folder, number)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files)
    control = {"control": debian_control(root, number), "md5sums": sums, "prerm": BEFORE_REMOVAL}
    for name, text in control.items():
        write(root / "DEBIAN" / name, text.encode())
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.name in (COMMAND, "prerm") else 0o644)
    root.chmod(0o755)
    path = folder / f"urscope_{number}_amd64.deb"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(TIME), "DPKG_DEB_THREADS_MAX": "1"}
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z9", "--build", root, path]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    shutil.rmtree(root)
    return path


def main():
    folder = Path(sys.argv[1])
    number = version()
    for old in [*folder.glob("*.whl"), *folder.glob("*.tar.gz"), *folder.glob("*.deb")]:
        old.unlink()
    shutil.rmtree(folder / "tree", ignore_errors=True)
    stage(folder / "urscope", folder / "tree", folder / "THIRD-PARTY.txt")
    for path in (wheel(folder, number), tarball(folder, number), debian_package(folder, number)):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, sha256 {digest}")
    with zipfile.ZipFile(folder / f"urscope-{number}-{TAG}.whl") as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    print(f"the wheel unpacked: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
