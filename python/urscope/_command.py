"""The command ``urscope``, which the package carries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List, Optional


def command_path() -> Path:
    """The command inside the installed package, or in a checkout the one that was built last. Raises FileNotFoundError."""
    package = Path(__file__).resolve().parent
    installed = package / "bin" / "urscope"
    if installed.exists():
        return installed
    checkout = package.parent.parent
    built = [checkout / "target" / profile / "urscope" for profile in ("release", "debug")]
    found = [path for path in built if path.exists()]
    if not found:
        raise FileNotFoundError(
            f"the command urscope is neither at {installed} nor in {built[0].parent}: "
            "reinstall the package, or run `cargo build --release` in a checkout"
        )
    return max(found, key=lambda path: path.stat().st_mtime)


def with_interpreter(arguments: List[str]) -> List[str]:
    """The arguments of the command, where ``run`` may be given a script or a module: this interpreter then runs it.

    ``run script.py …`` and ``run -m module …`` become ``run -- python script.py …``. All else is as it is.
    """
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
