#!/usr/bin/env python3
"""Fetches a real Level Zero loader and its headers, pinned by their hashes, and unpacks them into a folder.

    scripts/fetch-loader.py FOLDER

They are Debian 12's packages libze1, which runs on every system with glibc 2.34 or later, and libze-dev. The tests use the
software device as a driver under this loader.
"""

import hashlib
import io
import pathlib
import sys
import tarfile
import urllib.request

ARCHIVE = "http://deb.debian.org/debian/pool/main/l/level-zero/"
PACKAGES = {
    "libze1_1.8.12-1_amd64.deb": "403b3e3821a3e2dfdc8e6392300350943de2f66d1ada1dc551f8d5ac175ef944",
    "libze-dev_1.8.12-1_amd64.deb": "04982092f99d0815fad8352c785ae5e0a91501aab358745b4cd9a7ce78b54606",
}
FOLDERS = ("./usr/lib/x86_64-linux-gnu/lib", "./usr/include/level_zero/ze_")


def members(package: bytes):
    """The files of an archive of ar(1), with their names: a header of 60 bytes each, and an even number of bytes."""
    at = len(b"!<arch>\n")
    while at < len(package):
        name, size = package[at : at + 16].decode().strip().rstrip("/"), int(package[at + 48 : at + 58])
        yield name, package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def fetch(name: str, expected: str) -> bytes:
    """A package of the archive."""
    package = urllib.request.urlopen(ARCHIVE + name, timeout=60).read()
    found = hashlib.sha256(package).hexdigest()
    if found != expected:
        sys.exit(f"scripts/fetch-loader.py: {ARCHIVE}{name} has the SHA-256 {found}, expected {expected}")
    return package


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, expected in PACKAGES.items():
        data = dict(members(fetch(name, expected)))["data.tar.xz"]
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as files:
            for file in files:
                if file.name.startswith(FOLDERS) and file.isfile():
                    # The tests load a library by the name that its versions share, which is a link in the package.
                    short = ".".join(pathlib.PurePath(file.name).name.split(".")[:3])
                    (folder / short).write_bytes(files.extractfile(file).read())


main()
