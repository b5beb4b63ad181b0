#!/usr/bin/env python3
"""Fetches a real Level Zero loader, pinned by its hash, and unpacks it into a folder.

    scripts/fetch-loader.py FOLDER

It is Debian 12's package libze1, which runs on every system with glibc 2.34 or later. The tests use the software device as a driver under it.
"""

import hashlib
import io
import pathlib
import sys
import tarfile
import urllib.request

ADDRESS = "http://deb.debian.org/debian/pool/main/l/level-zero/libze1_1.8.12-1_amd64.deb"
HASH = "403b3e3821a3e2dfdc8e6392300350943de2f66d1ada1dc551f8d5ac175ef944"
LIBRARIES = "./usr/lib/x86_64-linux-gnu/"


def members(package: bytes):
    """The files of an archive of ar(1), with their names: a header of 60 bytes each, and an even number of bytes."""
    at = len(b"!<arch>\n")
    while at < len(package):
        name, size = package[at : at + 16].decode().strip().rstrip("/"), int(package[at + 48 : at + 58])
        yield name, package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    package = urllib.request.urlopen(ADDRESS, timeout=60).read()
    found = hashlib.sha256(package).hexdigest()
    if found != HASH:
        sys.exit(f"scripts/fetch-loader.py: {ADDRESS} has the SHA-256 {found}, expected {HASH}")
    data = dict(members(package))["data.tar.xz"]
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as files:
        for file in files:
            if file.name.startswith(LIBRARIES) and file.isfile():
                # The tests load a library by the name that its versions share, which is a link in the package.
                name = ".".join(file.name.removeprefix(LIBRARIES).split(".")[:3])
                (folder / name).write_bytes(files.extractfile(file).read())


main()
