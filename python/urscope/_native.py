"""The C functions of ``liburscope_ipc.so``, with Python's errors.

This module knows pointers and references as integers, and nothing of dpctl's classes.
"""

from __future__ import annotations

import ctypes
from typing import Optional, Tuple

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
        "urscope_ipc_last_error": (ctypes.c_char_p, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
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
    answer: int = _library.urscope_ipc_device_shares_memory(device)
    _raise_last_error("the device cannot be asked whether its memory can be shared")
    return answer == 1


def get_handle(pointer: int, context: int) -> Tuple[int, bytes]:
    """Gets handle data: their address, which :func:`free_handle_data` takes, and a copy of the bytes."""
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    failed = _library.DPCTLIPCMem_GetHandle(pointer, context, ctypes.byref(data), ctypes.byref(size))
    if failed or data.value is None:
        raise RuntimeError(f"the memory cannot be shared: {_last_error()}")
    return data.value, ctypes.string_at(data.value, size.value)


def free_handle_data(data: int) -> None:
    """Puts handle data, and frees them."""
    _library.DPCTLIPCMem_FreeHandleData(data)
    _raise_last_error("the handle cannot be put")


def open_handle(data: bytes, context: int, device: int) -> int:
    """Opens handle data: the address of the memory in this process."""
    pointer: Optional[int] = _library.DPCTLIPCMem_OpenHandle(data, len(data), context, device)
    if pointer is None:
        raise RuntimeError(_last_error() or "the runtime opened nothing and gives no reason")
    return pointer


def close_handle(pointer: int, context: int) -> None:
    """Closes what :func:`open_handle` opened."""
    _library.DPCTLIPCMem_CloseHandle(pointer, context)
    _raise_last_error("the mapping cannot be closed")
