"""What the kernel allows between two processes: forks, and the right to take a descriptor from another process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Optional

_PR_SET_PTRACER = 0x59616D61
_ANY_PROCESS = ctypes.c_ulong(-1).value

_forked_with_runtime = False


def _runtime_is_started() -> bool:
    """Whether the SYCL runtime has loaded an adapter, which it does with its first device."""
    try:
        return "libur_adapter_" in Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return False


def _after_fork_in_child() -> None:
    global _forked_with_runtime
    _forked_with_runtime = _forked_with_runtime or _runtime_is_started()


os.register_at_fork(after_in_child=_after_fork_in_child)


def refuse_forked_child() -> None:
    """Raises RuntimeError in a child of a process that had already started the SYCL runtime."""
    if _forked_with_runtime:
        raise RuntimeError(
            "this process was forked from one that had already started the SYCL runtime, and the runtime does not survive "
            "a fork: start processes with multiprocessing.get_context('spawn') or 'forkserver'"
        )


def permit_opening(pid: Optional[int] = None) -> bool:
    """Lets another process open the memory that this process shares.

    To open memory, the runtime takes a descriptor from the producer. Linux allows that to processes of the same user. With Yama's
    ``ptrace_scope`` at 1, which is the default on Ubuntu, it allows that only to the producer's ancestors, unless the producer names
    others. This function does: it also lets them debug this process. It holds until the process ends or calls it again.

    Parameters
    ----------
    pid : int, optional
        The process that may open, with all that it starts. Without it, all processes of the same user may.

    Returns
    -------
    bool
        True if the kernel has the restriction and took the permission; False if the kernel has none, so none is needed.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.restype = ctypes.c_int
    prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
    return int(prctl(_PR_SET_PTRACER, _ANY_PROCESS if pid is None else pid, 0, 0, 0)) == 0


def _exists(pid: int) -> bool:
    try:
        # A zombie has no memory any more.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _ptrace_scope() -> int:
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return 0


def why_unreachable(pid: int) -> Optional[str]:
    """Why no descriptor can be taken from that process; None if nothing is known to prevent it."""
    if pid == os.getpid():
        return None
    if not _exists(pid):
        return f"its producer, process {pid}, has ended or is not visible here"
    return None


def why_refused(pid: int) -> str:
    """What may have prevented an open that was refused; empty if nothing is known."""
    if pid != os.getpid() and _ptrace_scope() >= 1:
        return (
            f" (Yama's ptrace_scope is {_ptrace_scope()}: unless this process is an ancestor of the producer {pid}, the producer "
            "must call urscope.permit_opening())"
        )
    return ""
