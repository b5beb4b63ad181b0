"""``python -m urscope``: the command ``urscope``, with scripts and modules as programs.

    python -m urscope run --device software script.py
"""

from __future__ import annotations

import os
import sys

from ._command import command_path, with_interpreter


def main() -> None:
    """Becomes the command, which ends with its own exit code."""
    command = str(command_path())
    os.execv(command, [command, *with_interpreter(sys.argv[1:])])


if __name__ == "__main__":
    main()
