"""The C functions of ``liburscope_ipc.so``, with Python's errors.

This module knows pointers and references as integers, and nothing of dpctl's classes.
"""

from __future__ import annotations

import ctypes
from typing import Callable, Optional, Tuple

from ._command import native_file


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(native_file("liburscope_ipc.so", "urscope-python")))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    signatures = {
        "DPCTLIPCMem_Available": (ctypes.c_int, []),
        "urscope_ipc_device_shares_memory": (ctypes.c_int, [pointer]),
        "DPCTLIPCMem_GetHandle": (
            ctypes.c_int,
            [pointer, pointer, ctypes.POINTER(pointer), ctypes.POINTER(size)],
        ),
        "DPCTLIPCMem_OpenHandle": (pointer, [ctypes.c_char_p, size, pointer, pointer]),
        "DPCTLIPCMem_CloseHandle": (None, [pointer, pointer]),
        "DPCTLIPCMem_FreeHandleData": (None, [pointer]),
        "urscope_ipc_device_shares_physical_memory": (ctypes.c_int, [pointer]),
        "urscope_ipc_device_shares_events": (ctypes.c_int, [pointer]),
        "urscope_ipc_device_uuid": (ctypes.c_int, [pointer, ctypes.c_char_p]),
        "urscope_ipc_event_create": (pointer, [pointer]),
        "urscope_ipc_event_signal": (ctypes.c_int, [pointer, pointer]),
        "urscope_ipc_event_wait": (ctypes.c_int, [pointer, pointer]),
        "urscope_ipc_event_get": (ctypes.c_int, [pointer, pointer, ctypes.POINTER(pointer), ctypes.POINTER(size)]),
        "urscope_ipc_event_open": (pointer, [ctypes.c_char_p, size, pointer]),
        "urscope_ipc_physical_granularity": (size, [pointer, pointer]),
        "urscope_ipc_physical_create": (pointer, [pointer, pointer, size]),
        "urscope_ipc_physical_size": (size, [pointer]),
        "urscope_ipc_physical_get": (ctypes.c_int, [pointer, pointer, ctypes.POINTER(pointer), ctypes.POINTER(size)]),
        "urscope_ipc_physical_open": (pointer, [ctypes.c_char_p, size, pointer, pointer]),
        "urscope_ipc_physical_map": (pointer, [pointer, pointer, size, size]),
        "urscope_ipc_physical_unmap": (None, [pointer, size, pointer]),
        "urscope_ipc_physical_delete": (None, [pointer]),
        "urscope_ipc_last_error": (ctypes.c_char_p, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{library._name} is of another version of urscope: it has no {name}")
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _last_error() -> Optional[str]:
    text: Optional[bytes] = _library.urscope_ipc_last_error()
    return None if text is None else text.decode("utf-8", "replace")


def _raise_last_error(what: str) -> None:
    error = _last_error()
    if error is not None:
        raise RuntimeError(f"{what}: {error}")


def available() -> bool:
    """Whether the loaded libsycl can share memory between processes."""
    return bool(_library.DPCTLIPCMem_Available())


def device_shares_memory(device: int) -> bool:
    """Whether memory of this device can be shared. Raises RuntimeError if the runtime cannot tell."""
    return _asked(_library.urscope_ipc_device_shares_memory, device)


def device_shares_physical_memory(device: int) -> bool:
    """The same for physical memory."""
    return _asked(_library.urscope_ipc_device_shares_physical_memory, device)


def device_shares_events(device: int) -> bool:
    """The same for events."""
    return _asked(_library.urscope_ipc_device_shares_events, device)


def device_uuid(device: int) -> Optional[bytes]:
    """The 16 bytes of the UUID of this device; None if it has none."""
    uuid = ctypes.create_string_buffer(16)
    return None if _library.urscope_ipc_device_uuid(device, uuid) else uuid.raw


def _asked(function: Callable[[int], int], device: int) -> bool:
    answer = function(device)
    _raise_last_error("the device cannot be asked what it can share")
    return answer == 1


def get_handle(pointer: int, context: int) -> Tuple[int, bytes]:
    """Gets handle data: their address, which :func:`free_handle_data` takes, and a copy of the bytes."""
    return _get(_library.DPCTLIPCMem_GetHandle, "the memory", pointer, context)


def _get(function: Callable[..., int], what: str, shared: int, context: int) -> Tuple[int, bytes]:
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    failed = function(shared, context, ctypes.byref(data), ctypes.byref(size))
    if failed or data.value is None:
        raise RuntimeError(f"{what} cannot be shared: {_last_error()}")
    return data.value, ctypes.string_at(data.value, size.value)


def free_handle_data(data: int) -> None:
    """Puts handle data, and frees them."""
    _library.DPCTLIPCMem_FreeHandleData(data)
    _raise_last_error("the handle cannot be put")


def open_handle(data: bytes, context: int, device: int) -> int:
    """Opens handle data: the address of the memory in this process."""
    return _given(_library.DPCTLIPCMem_OpenHandle(data, len(data), context, device))


def _given(reference: Optional[int]) -> int:
    """What a function gave, which is null where it failed."""
    if reference is None:
        raise RuntimeError(_last_error() or "the runtime gave nothing and no reason")
    return reference


def close_handle(pointer: int, context: int) -> None:
    """Closes what :func:`open_handle` opened."""
    _library.DPCTLIPCMem_CloseHandle(pointer, context)
    _raise_last_error("the mapping cannot be closed")


def create_event(context: int) -> int:
    """Makes an event that can be shared: a reference of dpctl, which dpctl deletes."""
    return _given(_library.urscope_ipc_event_create(context))


def signal_event(queue: int, event: int) -> None:
    """Has the queue signal the event."""
    _library.urscope_ipc_event_signal(queue, event)
    _raise_last_error("the event cannot be signalled")


def wait_for_event(queue: int, event: int) -> None:
    """Has the queue wait for the event."""
    _library.urscope_ipc_event_wait(queue, event)
    _raise_last_error("the queue cannot wait for the event")


def get_event(event: int, context: int) -> Tuple[int, bytes]:
    """Gets handle data of an event, as :func:`get_handle` those of memory."""
    return _get(_library.urscope_ipc_event_get, "the event", event, context)


def open_event(data: bytes, context: int) -> int:
    """Opens handle data of an event: a reference of dpctl, which dpctl deletes."""
    return _given(_library.urscope_ipc_event_open(data, len(data), context))


def physical_granularity(context: int, device: int) -> int:
    """Of what the sizes of physical memory are multiples, in bytes."""
    return _measured(_library.urscope_ipc_physical_granularity(context, device), "the granularity of the device is not known")


def _measured(size: int, what: str) -> int:
    _raise_last_error(what)
    return size


def create_physical(context: int, device: int, nbytes: int) -> int:
    """Makes physical memory: a reference, which :func:`delete_physical` ends."""
    return _given(_library.urscope_ipc_physical_create(context, device, nbytes))


def physical_size(memory: int) -> int:
    """The size of physical memory in bytes."""
    return _measured(_library.urscope_ipc_physical_size(memory), "the size of the memory is not known")


def get_physical(memory: int, context: int) -> Tuple[int, bytes]:
    """Gets handle data of physical memory, as :func:`get_handle` those of USM."""
    return _get(_library.urscope_ipc_physical_get, "the memory", memory, context)


def open_physical(data: bytes, context: int, device: int) -> int:
    """Opens handle data of physical memory: a reference, which :func:`delete_physical` ends."""
    return _given(_library.urscope_ipc_physical_open(data, len(data), context, device))


def map_physical(memory: int, context: int, offset: int, nbytes: int) -> int:
    """Maps a part of physical memory: its address."""
    return _given(_library.urscope_ipc_physical_map(memory, context, offset, nbytes))


def unmap_physical(pointer: int, nbytes: int, context: int) -> None:
    """Unmaps what :func:`map_physical` mapped."""
    _library.urscope_ipc_physical_unmap(pointer, nbytes, context)
    _raise_last_error("the memory cannot be unmapped")


def delete_physical(memory: int) -> None:
    """Gives a reference to physical memory back."""
    _library.urscope_ipc_physical_delete(memory)
