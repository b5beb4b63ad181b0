"""Fails if a program or library needs a newer C library, or a library that not every system has.

    python symbol-versions.py 2.28 FILE…
"""

import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

#: What the C library consists of.
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}

#: What the library of the Python package also needs, as libsycl does: the C++ library, in the versions of GCC 3.4 and later.
OF_SYCL = {("libstdc++.so.6", "CXXABI_1.3"), ("libstdc++.so.6", "GLIBCXX_3.4")}


def numbers(version):
    return tuple(int(number) for number in version.split("."))


def problems(path, newest):
    """What is wrong with a file, one text each."""
    besides = OF_SYCL if path.name == "liburscope_ipc.so" else set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED"):
            if tag.needed not in ALLOWED | {library for library, _ in besides}:
                yield f"it needs {tag.needed}"
        found = []
        for section in elf.iter_sections():
            if isinstance(section, GNUVerNeedSection):
                found += [(library.name, version.name) for library, versions in section.iter_versions() for version in versions]
        if not found:
            yield "it names no version of the C library"
        for library, version in set(found) - besides:
            prefix, _, number = version.partition("_")
            if prefix != "GLIBC" or numbers(number) > numbers(newest):
                yield f"it needs {version} of {library}"


def main():
    newest, *files = sys.argv[1:]
    assert files, "no files were given"
    wrong = [f"{name}: {problem}" for name in files for problem in problems(Path(name), newest)]
    print("\n".join(wrong) or f"{len(files)} files need glibc {newest} or an older one, and no other library, but for liburscope_ipc.so")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
