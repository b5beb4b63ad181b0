"""``python -m urscope``: the command ``urscope``, with scripts and modules as programs.

    python -m urscope run --device software script.py
"""

from __future__ import annotations

import os
import sys

from ._command import command_path


def main() -> None:
    """Becomes the command, which ends with its own exit code."""
    command = str(command_path())
    arguments = sys.argv[1:]
    # Without arguments, the command prints its help.
    interpreter = ["--interpreter", sys.executable] if arguments else []
    os.execv(command, [command, *interpreter, *arguments])


if __name__ == "__main__":
    main()
