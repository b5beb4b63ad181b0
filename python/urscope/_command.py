"""The command ``urscope``, which the package carries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List, Optional


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


def with_interpreter(arguments: List[str]) -> List[str]:
    """The arguments of the command, where ``run`` may be given a script or a module: this interpreter then runs it.

    ``run script.py …`` and ``run -m module …`` become ``run -- python script.py …``. ``example`` takes this interpreter, too. All else is
    as it is.
    """
    if arguments[:1] == ["example"]:
        return ["example", "--interpreter", sys.executable, *arguments[1:]]
    if not arguments or arguments[0] != "run":
        return arguments
    at = _start_of_program(arguments)
    if at is None:
        return arguments
    options = arguments[:at]
    if options[-1] == "--":
        options = options[:-1]
    return [*options, "--", sys.executable, *arguments[at:]]


def _start_of_program(arguments: List[str]) -> Optional[int]:
    """Where the script or ``-m`` is; None if the program is neither."""
    for at, argument in enumerate(arguments):
        if argument == "--":
            following = at + 1
            is_python = following < len(arguments) and _is_python(arguments[following])
            return following if is_python else None
        if _is_python(argument):
            return at
    return None


def _is_python(argument: str) -> bool:
    return argument == "-m" or (argument.endswith(".py") and Path(argument).is_file())
