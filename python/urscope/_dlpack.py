"""DLPack capsules on memory, made without a compiler: the structures of ``dlpack.h`` for a vector of bytes."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_UINT = 1
_NAME = b"dltensor"

#: What the structures that are in use need, by their address.
_in_use: Dict[int, Tuple[Any, ...]] = {}


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# The capsule that is being destroyed must not be counted, so it is passed as an address.
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _callbacks() -> Tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """The deleter of a tensor and the destructor of a capsule.

    Both may be called while the interpreter ends, when this module no longer has its names: they have names of their own, and are
    never freed.
    """
    in_use, is_valid, pointer_of, name = _in_use, _is_valid, _pointer_of, _NAME

    def release(managed: int) -> None:
        in_use.pop(managed, None)

    def destroy(capsule: int) -> None:
        # A consumer renames a capsule that it takes over, and then calls the deleter itself.
        if is_valid(capsule, name):
            in_use.pop(pointer_of(capsule, name), None)

    # A consumer may call the deleter from any thread, with or without the interpreter's lock, which CFUNCTYPE takes.
    made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(destroy)
    for callback in made:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    deleter, destructor = (ctypes.cast(callback, ctypes.c_void_p) for callback in made)
    return deleter, destructor


_deleter, _destructor = _callbacks()


def dlpack_capsule(owner: object, pointer: int, nbytes: int, device: Tuple[int, int]) -> object:
    """A capsule of dtype uint8, shape ``(nbytes,)``. ``owner`` lives as long as the capsule, or what a consumer made from it."""
    shape = (ctypes.c_int64 * 1)(nbytes)
    strides = (ctypes.c_int64 * 1)(1)
    managed = _Managed()
    managed.tensor = _Tensor(pointer, _Device(*device), 1, _UINT, 8, 1, shape, strides, 0)
    managed.deleter = _deleter
    address = ctypes.addressof(managed)
    _in_use[address] = (managed, shape, strides, owner)
    capsule: object = _new(address, _NAME, _destructor)
    return capsule
