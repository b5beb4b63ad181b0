"""The command ``urscope``, which the package carries."""

from __future__ import annotations

from pathlib import Path


def command_path() -> Path:
    """Where the command is. Raises FileNotFoundError if it is not there."""
    return native_file("urscope", "urscope-command")


def native_file(name: str, crate: str) -> Path:
    """A file of the wheel, or of the tree that the package is in; in a checkout the one that was built last, from that crate.

    Raises FileNotFoundError if there is none.
    """
    package = Path(__file__).resolve().parent
    # The checkout, or the folder of the libraries, as in lib/urscope/python/urscope.
    above = package.parent.parent
    places = [package / "native"]
    if (above / "liburscope.so").is_file():
        places += [above, above.parent.parent / "bin"]
    for place in places:
        if (place / name).is_file():
            return place / name
    built = [above / "target" / profile / name for profile in ("release", "debug")]
    found = [path for path in built if path.is_file()]
    if not found:
        raise FileNotFoundError(
            f"urscope's file {name} is not in {', '.join(map(str, places))}: install urscope again, or run "
            f"`cargo build --release -p {crate}` in a checkout"
        )
    return max(found, key=lambda path: path.stat().st_mtime)
