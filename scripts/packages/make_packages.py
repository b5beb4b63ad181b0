"""Makes the wheel, the tarball and the Debian package from the files that scripts/packages/build has built, byte for byte the same each time.

    python3 scripts/packages/make_packages.py FOLDER

FOLDER/urscope holds the command and the libraries, FOLDER/THIRD-PARTY.txt the licences of what is linked into them. The wheel holds no code
for a certain Python, so one serves all of them. All files have the time SOURCE_DATE_EPOCH, in seconds since 1970, or else the earliest that a
zip file can hold.
"""

import base64
import gzip
import hashlib
import io
import lzma
import os
import shutil
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from stage_tree import COMMAND, LIBRARIES, SUMMARY, licences, metadata, python_package, stage, version

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


def entries_of(tree, top):
    """The folders, files and links of a tree in a fixed order: triples of name, mode, and content, which a folder has not; that of a link is
    its target, as text."""
    yield top, 0o755, None
    for path in sorted(tree.rglob("*")):
        name = f"{top}/{path.relative_to(tree)}"
        if path.is_symlink():
            yield name, 0o777, os.readlink(path)
            continue
        yield name, path.stat().st_mode & 0o777, None if path.is_dir() else path.read_bytes()


def tar(entries):
    """An archive whose files belong to root. The content of an entry may also be the target of a link, as text."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, mode, content in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime, entry.uname, entry.gname = mode, TIME, "root", "root"
            if content is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
            else:
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return made.getvalue()


def tarball(folder, number):
    """The tree, which works wherever it lies."""
    top = f"urscope-{number}-x86_64-linux"
    path = folder / f"{top}.tar.gz"
    path.write_bytes(gzip.compress(tar(entries_of(folder / "tree", top)), 9, mtime=0))
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


def debian_entries(folder, number):
    """The tree below /usr, as Debian has it: manuals compressed, Python's package where python3 finds it, and no modulefiles, because
    the command is in PATH anyway."""
    entries = {"./usr": (0o755, None)}
    for name, mode, content in entries_of(folder / "tree", "./usr"):
        if name.startswith("./usr/share/modulefiles"):
            continue
        if name.startswith("./usr/share/man/") and content is not None:
            name, content = f"{name}.gz", gzip.compress(content, 9, mtime=0)
        # Debian's zsh looks in another folder for what packages bring.
        name = name.replace("/zsh/site-functions", "/zsh/vendor-completions")
        entries[name] = (mode, content)
    entries["./usr/share/doc/urscope/copyright"] = (0o644, COPYRIGHT.encode())
    for link in ("urscope", f"urscope-{number}.dist-info"):
        entries[f"./usr/lib/python3/dist-packages/{link}"] = (0o777, f"../../urscope/python/{link}")
    for folder_name in ("./usr/lib/python3", "./usr/lib/python3/dist-packages"):
        entries[folder_name] = (0o755, None)
    yield ".", 0o755, None
    for name in sorted(entries):
        yield name, *entries[name]


def debian_control(number, entries):
    """The files that describe the package to dpkg: triples, as in `entries_of`."""
    contents = [(name, content) for name, _, content in entries if isinstance(content, bytes)]
    size = sum(-(-len(content) // 1024) for _, content in contents) + sum(content is None for _, _, content in entries)
    control = f"""\
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
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {name[2:]}\n" for name, content in contents)
    yield ".", 0o755, None
    yield "./control", 0o644, control.encode()
    yield "./md5sums", 0o644, sums.encode()
    yield "./prerm", 0o755, BEFORE_REMOVAL.encode()


def debian_package(folder, number):
    """An archive of ar(1) with two of tar(1), as deb(5) describes it."""
    entries = list(debian_entries(folder, number))
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", lzma.compress(tar(debian_control(number, entries)), preset=9)),
        ("data.tar.xz", lzma.compress(tar(entries), preset=9)),
    ]
    made = b"!<arch>\n"
    for name, content in members:
        made += f"{name:<16}{TIME:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    path = folder / f"urscope_{number}_amd64.deb"
    path.write_bytes(made)
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
