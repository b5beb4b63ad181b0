"""urscope for Python: GPU memory shared between processes, and findings about it.

* :class:`IPCMemoryHandle` and :class:`MemoryIPCDevice` share USM device memory of dpctl between processes.
* :class:`IPCPhysicalMemory` and :class:`IPCEvent`, with handles of their own, do the same for physical memory and events.
* :func:`permit_opening` lets other processes open what this one shares, where the kernel asks for that.
* :func:`check` analyzes the traces of a run, and returns a :class:`~urscope.findings.Report` of :class:`Finding`.

The classes need dpctl 0.20 or later, and load it when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from ._processes import permit_opening
from .findings import Finding, Report, check

if TYPE_CHECKING:
    from .events import IPCEvent, IPCEventHandle
    from .memory import IPCMemoryHandle, MemoryIPCDevice
    from .physical import IPCPhysicalMemory, IPCPhysicalMemoryHandle

__all__ = [
    "Finding",
    "IPCEvent",
    "IPCEventHandle",
    "IPCMemoryHandle",
    "IPCPhysicalMemory",
    "IPCPhysicalMemoryHandle",
    "MemoryIPCDevice",
    "Report",
    "check",
    "permit_opening",
]

__version__ = "0.1.0"

#: The modules of what needs dpctl.
_MODULES = {
    "IPCEvent": "events",
    "IPCEventHandle": "events",
    "IPCMemoryHandle": "memory",
    "IPCPhysicalMemory": "physical",
    "IPCPhysicalMemoryHandle": "physical",
    "MemoryIPCDevice": "memory",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module 'urscope' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
