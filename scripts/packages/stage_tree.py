"""Puts what has been built into a tree that works wherever it lies: bin, lib, share.

    python3 scripts/packages/stage_tree.py PROGRAMS TREE [THIRD-PARTY]

PROGRAMS is a folder with the command and the libraries, as cargo makes them. THIRD-PARTY is the text that scripts/packages/third-party.py prints, if
the tree is to be passed on. The tree must not exist. Completions and manual pages come from the command itself.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "urscope"
LIBRARIES = ("liburscope.so", "liburscope_cuda.so", "liburscope_ipc.so", "libze_loader.so")
#: The software device under the names of a loader, as links. A program that is to find it has this folder in LD_LIBRARY_PATH.
DEVICE_LINKS = {f"lib/urscope/device/{name}": "../libze_loader.so" for name in ("libze_loader.so", "libze_loader.so.1")}
SUMMARY = "Finds mistakes in how programs share GPU memory and events between processes"
#: Where each shell looks for completions, below `share`.
COMPLETIONS = {
    "bash": "bash-completion/completions/urscope",
    "zsh": "zsh/site-functions/_urscope",
    "fish": "fish/vendor_completions.d/urscope.fish",
}
#: Files of `packaging`, and where they lie in the tree.
FROM_TEMPLATES = {
    "urscope.pc": "lib/pkgconfig/urscope.pc",
    "urscope-config.cmake": "lib/cmake/urscope/urscope-config.cmake",
    "urscope-config-version.cmake": "lib/cmake/urscope/urscope-config-version.cmake",
    "modulefile.lua": "share/modulefiles/urscope/@VERSION@.lua",
    "modulefile.tcl": "share/modulefiles/urscope/@VERSION@",
}


def version():
    """The version of the workspace, which the Python package has, too."""
    manifest = (ROOT / "Cargo.toml").read_text()
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', manifest, re.MULTILINE)
    package = re.search(r'^__version__ = "([^"]+)"', (ROOT / "python/urscope/__init__.py").read_text(), re.MULTILINE)
    assert found and package and found[1] == package[1], "Cargo.toml and python/urscope/__init__.py name other versions"
    return found[1]


def python_package():
    """The Python package and its types: pairs of name and content."""
    for path in sorted((ROOT / "python/urscope").glob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"urscope/{path.name}", path.read_bytes()


def metadata(number):
    """What the package says of itself to pip and to pytest: pairs of name and content. Without it, pytest does not know the plugin."""
    head = f"""\
Metadata-Version: 2.4
Name: urscope
Version: {number}
Summary: {SUMMARY}, and shares memory from Python
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

"""
    entry_points = "[console_scripts]\nurscope = urscope.__main__:main\n\n[pytest11]\nurscope = urscope.pytest_plugin\n"
    yield "METADATA", (head + (ROOT / "docs/python.md").read_text()).encode()
    yield "entry_points.txt", entry_points.encode()


def licences(third_party):
    """Pairs of name and content."""
    for path in (ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", third_party):
        if path:
            yield path.name, path.read_bytes()


def filled(text, number):
    return text.replace("@VERSION@", number).replace("@SUMMARY@", SUMMARY)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def stage(programs, tree, third_party=None):
    """Makes the tree. Its files have the mode 0755 or 0644, whatever the umask is."""
    number = version()
    tree.mkdir(parents=True)
    for name in LIBRARIES:
        write(tree / "lib/urscope" / name, (programs / name).read_bytes())
    for name, target in DEVICE_LINKS.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).symlink_to(target)
    command = tree / "bin" / COMMAND
    write(command, (programs / COMMAND).read_bytes())
    command.chmod(0o755)

    for shell, place in COMPLETIONS.items():
        said = subprocess.run([command, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
        write(tree / "share" / place, said)
    subprocess.run([command, "man", tree / "share/man/man1"], check=True)
    for name, place in FROM_TEMPLATES.items():
        text = filled((ROOT / "packaging" / name).read_text(), number)
        write(tree / filled(place, number), text.encode())
    for name, content in python_package():
        write(tree / "lib/urscope/python" / name, content)
    for name, content in metadata(number):
        write(tree / f"lib/urscope/python/urscope-{number}.dist-info" / name, content)
    for name, content in licences(third_party):
        write(tree / "share/doc/urscope" / name, content)
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path == command else 0o644)
    tree.chmod(0o755)


def main():
    programs, tree, *third_party = map(Path, sys.argv[1:])
    missing = [name for name in (COMMAND, *LIBRARIES) if not (programs / name).is_file()]
    if missing:
        sys.exit(f"scripts/packages/stage_tree.py: {programs} has no {', '.join(missing)}; build them with: cargo build --release --workspace")
    if tree.exists() and any(tree.iterdir()):
        sys.exit(f"scripts/packages/stage_tree.py: {tree} is not empty")
    if tree.exists():
        tree.rmdir()
    stage(programs, tree, *third_party)


if __name__ == "__main__":
    main()
