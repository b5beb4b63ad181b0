"""urscope for Python: GPU memory shared between processes, and findings about it.

* :class:`IPCMemoryHandle` and :class:`MemoryIPCDevice` share USM device memory of dpctl between processes.
* :func:`permit_opening` lets other processes open what this one shares, where the kernel asks for that.
* :func:`check` analyzes the traces of a run, and returns a :class:`~urscope.findings.Report` of :class:`Finding`.

The two classes need dpctl 0.20 or later, and load it when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from ._processes import permit_opening
from .findings import Finding, Report, check

if TYPE_CHECKING:
    from .memory import IPCMemoryHandle, MemoryIPCDevice

__all__ = ["Finding", "IPCMemoryHandle", "MemoryIPCDevice", "Report", "check", "permit_opening"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("IPCMemoryHandle", "MemoryIPCDevice"):
        from . import memory

        return getattr(memory, name)
    raise AttributeError(f"module 'urscope' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
