"""Prints what others have written of the programs of a package, and their licences. The same commit gives the same text.

    python3 scripts/packages/third-party.py ZIG

ZIG is the folder of the zig that links the programs. What is linked: the crates that cargo names, Rust's standard library, and from zig the
unwinder of LLVM.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = "x86_64-unknown-linux-gnu"
PACKAGES = {"urscope-command", "urscope-preload", "urscope-device-loader", "urscope-device-cuda", "urscope-python"}
#: The names of files with a licence that may be offered beside MIT.
OTHERS = re.compile(r"apache|bsd|unlicense|zlib|boost|bsl|cc0", re.IGNORECASE)
#: A line that says whose the copyright is.
NOTICE = re.compile(r"\s*(copyright\b|\(c\)|©)", re.IGNORECASE)
#: The names of files with a licence or a notice in a crate.
LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?", re.IGNORECASE)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def linked_crates():
    """The crates of others that the programs are linked from, by name and version."""
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity, package in packages.items() if package["name"] in PACKAGES]
    found = set()
    while waiting:
        identity = waiting.pop()
        # A macro runs in the compiler.
        is_macro = any("proc-macro" in target["kind"] for target in packages[identity]["targets"])
        if identity in found or is_macro:
            continue
        found.add(identity)
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    crates = [packages[identity] for identity in found if packages[identity]["source"] is not None]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def licence_files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file() and LICENCE.fullmatch(path.name))


def chosen(files, licence):
    """The files of the licence that the programs are used under: MIT where a project offers that among others."""
    is_mit = any("MIT" in path.name.upper() for path in files)
    if not is_mit or " AND " in licence or not re.search(r" OR |/", licence):
        return files
    return [path for path in files if not OTHERS.search(path.name)]


def text_of(path):
    lines = path.read_text(errors="replace").replace("\r\n", "\n").strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def parts_of(path):
    """The words of a text without its copyright notices, these notices, and the text without them."""
    lines = text_of(path).split("\n")
    notices = [line for line in lines if NOTICE.match(line)]
    text = "\n".join(line for line in lines if not NOTICE.match(line)).strip("\n")
    return " ".join(text.split()), notices, text


def main():
    zig = Path(sys.argv[1])
    sysroot = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust"
    version = run("rustc", "--version").split()[1]
    rust = [sysroot / "licenses" / f"{name}.txt" for name in ("Apache-2.0", "MIT")]
    parts = [(f"Rust's standard library {version}", "MIT OR Apache-2.0", "https://github.com/rust-lang/rust", rust)]
    # A file of the unwinder has the licence at its head; the text of it is that of LLVM.
    llvm = [sysroot / "licenses" / f"{name}.txt" for name in ("Apache-2.0", "LLVM-exception")]
    assert (zig / "lib/libunwind").is_dir(), f"{zig} has no unwinder"
    parts.append(("LLVM's libunwind", "Apache-2.0 WITH LLVM-exception", "https://github.com/llvm/llvm-project", llvm))
    without = []
    for crate in linked_crates():
        files = licence_files(Path(crate["manifest_path"]).parent)
        name, licence = f"{crate['name']} {crate['version']}", crate["license"] or "see below"
        if not files:
            # Its package has no file. Both texts are here, and the authors as the package names them.
            without.append(name)
            files = rust
            licence += "; by " + ", ".join(crate["authors"] or ["its authors"])
        parts.append((name, licence, crate["repository"] or "", chosen(files, licence)))

    # Texts that differ only in their copyright notices, or in how their lines are broken, are one.
    texts = {}
    for name, _, _, files in parts:
        for path in files:
            words, notices, text = parts_of(path)
            _, names, all_notices = texts.setdefault(words, (text, [], []))
            names.append(name)
            all_notices.extend(notice for notice in notices if notice not in all_notices)
    numbers = {words: number for number, words in enumerate(texts, 1)}
    print("The programs of urscope contain code of the following projects, under their licences. Where a project offers a choice\n"
          "with MIT in it, this is the licence used here.\n")
    for name, licence, place, files in parts:
        used = sorted({numbers[parts_of(path)[0]] for path in files})
        print(f"* {name} ({licence}) {place}\n  texts {', '.join(map(str, used))}")
    for number, (text, names, notices) in enumerate(texts.values(), 1):
        notices = "".join(f"{notice}\n" for notice in notices)
        print(f"\n{'=' * 100}\nText {number}, of {', '.join(names)}\n\n{notices}\n{text}")
    known = re.compile(r"\b(MIT|Apache-2\.0)\b")
    for name in without:
        licence = next(licence for other, licence, _, _ in parts if other == name)
        assert known.search(licence), f"the package of {name} has no text of its licence {licence}"


if __name__ == "__main__":
    main()
