"""What dpctl offers to C only: making memory objects, and what is inside of them.

dpctl exports these functions as capsules of its modules, with their C signatures as names.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

import dpctl
import dpctl._sycl_event as _sycl_event
import dpctl.memory._memory as _memory
from dpctl.memory import MemoryUSMDevice

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _function(module: Any, name: str, result: Any, *arguments: Any) -> Any:
    capsule = module.__pyx_capi__.get(name)
    if capsule is None:
        raise ImportError(f"this dpctl has no {name} in its C interface; urscope needs dpctl 0.20 or later")
    address = _capsule_pointer(capsule, _capsule_name(capsule))
    return ctypes.PYFUNCTYPE(result, *arguments)(address)


_make = _function(
    _memory, "Memory_Make", ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.py_object
)
_opaque_pointer = _function(_memory, "Memory_GetOpaquePointer", ctypes.c_void_p, ctypes.py_object)
_make_event = _function(_sycl_event, "SyclEvent_Make", ctypes.py_object, ctypes.c_void_p)
_reference_of_event = _function(_sycl_event, "SyclEvent_GetEventRef", ctypes.c_void_p, ctypes.py_object)
_delete_event = ctypes.CDLL(_sycl_event.__file__).DPCTLEvent_Delete
_delete_event.restype, _delete_event.argtypes = None, [ctypes.c_void_p]


def memory_on(pointer: int, nbytes: int, queue: Any, owner: object) -> MemoryUSMDevice:
    """A memory object that does not free its memory, and keeps ``owner`` alive. So do all views of it."""
    memory: MemoryUSMDevice = _make(pointer, nbytes, queue.addressof_ref(), owner)
    return memory


def owns_allocation(memory: MemoryUSMDevice) -> bool:
    """Whether the memory is freed with its last view, as dpctl's own allocations are."""
    pointer: Optional[int] = _opaque_pointer(memory)
    return pointer is not None


def forget_pointer(memory: MemoryUSMDevice, pointer: int, nbytes: int) -> bool:
    """Makes the object one of no memory, also for dpctl's own code, which reads its fields.

    dpctl publishes the fields in ``dpctl/memory/_memory.h``: the pointer, then a word that is null where the memory belongs to
    another object, then the number of bytes. Where these three are not found, nothing is changed, and the answer is False.
    """
    word = ctypes.sizeof(ctypes.c_size_t)
    words = (ctypes.c_size_t * (type(memory).__basicsize__ // word)).from_address(id(memory))
    # The first two words are Python's.
    found = [at for at in range(2, len(words) - 2) if list(words[at : at + 3]) == [pointer, 0, nbytes]]
    if len(found) != 1:
        return False
    words[found[0]] = words[found[0] + 2] = 0
    return True


def event_of(reference: int) -> dpctl.SyclEvent:
    """An event object for a reference, which it takes over."""
    try:
        event: dpctl.SyclEvent = _make_event(reference)
    finally:
        # The object has a copy of its own.
        _delete_event(reference)
    return event


def reference_of(event: dpctl.SyclEvent) -> int:
    """The reference of an event, which lives as long as the event."""
    reference: int = _reference_of_event(event)
    return reference
