"""USM device memory that several processes use: a producer's handles, and a consumer's mappings.

The classes have the names, methods and errors of dpctl's main line, so code that uses them can later import them from
``dpctl.memory``. They differ in lifetimes: a handle is put when nobody holds it any more, and a mapping is closed when the last memory
object or array on it is gone.
"""

from __future__ import annotations

import gc
import os
import sys
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Tuple, Type

import dpctl
from dpctl.memory import MemoryUSMDevice
from dpctl.memory._memory import _Memory

from . import _native, _objects, _processes
from ._dlpack import dlpack_capsule
from ._handle_bytes import head_of
from ._handles import Handle, Producer, put_handle, require_types

__all__ = ["IPCMemoryHandle", "MemoryIPCDevice"]

#: `kDLOneAPI` of DLPack.
_DLPACK_ONEAPI = 14


class _Mapping:
    """An opened mapping. It is closed once: when it is collected, when :meth:`close` is called, or at the interpreter's exit."""

    def __init__(self, pointer: int, context: dpctl.SyclContext) -> None:
        self.pointer = pointer
        self.close: Callable[[], object] = weakref.finalize(self, _close, pointer, context, os.getpid())


def _close(pointer: int, context: dpctl.SyclContext, pid: int) -> None:
    # A forked child has not the mapping, only the memory of its parent.
    if os.getpid() == pid:
        _native.close_handle(pointer, context.addressof_ref())


_INTERFACE = "__sycl_usm_array_interface__"


def _is_array(value: object) -> bool:
    """Whether memory can be made from the object, or from the one whose attributes it is."""
    if isinstance(value, _Memory) or hasattr(type(value), _INTERFACE):
        return True
    if type(value) is not dict:
        try:
            value = object.__getattribute__(value, "__dict__")
        except Exception:  # It has none, or stands for another object that is not there.
            return False
    return type(value) is dict and _INTERFACE in value


def _references(memory: MemoryIPCDevice) -> int:
    """How many references to the object's mapping there are. It counts one more, always the same."""
    return sys.getrefcount(memory.reference_obj)


class MemoryIPCDevice(MemoryUSMDevice):  # type: ignore[misc]
    """USM device memory of another process, opened in this one. :meth:`IPCMemoryHandle.open` makes it.

    It is a :class:`dpctl.memory.MemoryUSMDevice` in every respect: it can be copied from and to, and arrays can be made on it without
    a copy. Its mapping is closed when this object and all views and arrays on it are gone.

    As a context manager it is closed at the end of the block.
    """

    _is_closed = False
    #: Whether arrays referred to this object when it was closed: for them it still says where the memory is.
    _is_left_to_arrays = False
    #: What :func:`_references` counts when this object is the only one on its mapping.
    _alone: int

    def __init__(self, *_arguments: object, **_keywords: object) -> None:
        raise TypeError("MemoryIPCDevice is made by IPCMemoryHandle.open")

    @classmethod
    def _on(cls, mapping: _Mapping, nbytes: int, queue: dpctl.SyclQueue) -> MemoryIPCDevice:
        make: Any = cls.__new__
        memory: MemoryIPCDevice = make(cls, _objects.memory_on(mapping.pointer, nbytes, queue, mapping))
        return memory

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    def close(self) -> None:
        """Gives this object's share in the mapping back. The mapping itself is closed now, or with the last view or array on it.

        Using this object afterwards raises ValueError. Arrays on it go on as before. A second call does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._is_left_to_arrays = self._has_arrays()
        if self._is_left_to_arrays or _references(self) > self._alone:
            return
        # A view that another thread makes until here shares the mapping; one that is made afterwards has no pointer.
        if _objects.forget_pointer(self, self._pointer, self.nbytes) and _references(self) == self._alone:
            self.reference_obj.close()

    def _has_arrays(self) -> bool:
        """Whether an array, or other memory, was made from this object and refers to it rather than to the mapping."""
        # Objects may keep what they refer to in a dictionary or another container of their own.
        containers = []
        for other in gc.get_referrers(self):
            if _is_array(other):
                return True
            if type(other) in (dict, list, tuple):
                containers.append(other)
        return bool(containers) and any(_is_array(other) for other in gc.get_referrers(*containers))

    def _opened(self) -> _Mapping:
        """The mapping, which cannot be closed while the caller holds it."""
        mapping: _Mapping = self.reference_obj
        if self._is_closed:
            raise ValueError("the IPC mapping of this memory has been closed")
        return mapping

    def __enter__(self) -> MemoryIPCDevice:
        self._opened()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._is_closed:
            return "<closed IPC mapping>"
        return f"<IPC mapping of {self.nbytes} bytes at {self._pointer:#x}>"

    # What dpctl's class does with its memory needs an open mapping.

    def copy_to_host(self, obj: Any = None) -> Any:
        """Copies the memory to ``obj``, a writable buffer of bytes; without it, to a new array of dtype uint8, shape ``(nbytes,)``.

        Raises ValueError if this object is closed.
        """
        _held = self._opened()
        return super().copy_to_host(obj)

    def copy_from_host(self, obj: Any) -> None:
        """Copies ``obj``, a buffer of at most ``nbytes`` bytes, to the memory. Raises ValueError if this object is closed."""
        _held = self._opened()
        super().copy_from_host(obj)

    def copy_from_device(self, obj: Any) -> None:
        """Copies USM memory of at most ``nbytes`` bytes to this memory. Raises ValueError if this object is closed."""
        _held = self._opened()
        super().copy_from_device(obj)

    def memset(self, val: int = 0) -> None:
        """Sets every byte to ``val``. Raises ValueError if this object is closed."""
        _held = self._opened()
        super().memset(val)

    def tobytes(self) -> bytes:
        """A copy of the memory. Raises ValueError if this object is closed."""
        _held = self._opened()
        copy: bytes = super().tobytes()
        return copy

    def get_usm_type(self, syclobj: Any = None) -> str:
        """``"device"``. Raises ValueError if this object is closed."""
        _held = self._opened()
        kind: str = super().get_usm_type(syclobj)
        return kind

    @property
    def __sycl_usm_array_interface__(self) -> Dict[str, Any]:
        """What dpctl and dpnp make arrays from: dtype ``|u1``, shape ``(nbytes,)``. Raises ValueError if this object is closed and no
        array needs it.
        """
        if not self._is_left_to_arrays:
            self._opened()
        interface: Dict[str, Any] = super().__sycl_usm_array_interface__
        return interface

    def __dlpack_device__(self) -> Tuple[int, int]:
        """DLPack's type of oneAPI devices, 14, and the number of the device in ``dpctl.get_devices()``."""
        return _DLPACK_ONEAPI, self.sycl_device.get_device_id()

    def __dlpack__(self, *, stream: Any = None, **_options: Any) -> object:
        """A DLPack capsule of dtype uint8, shape ``(nbytes,)``, on this memory. It shares the mapping as a view does.

        Raises ValueError if this object is closed, and BufferError for a ``stream``, as dpctl's queue orders nothing for others.
        """
        self._opened()
        if stream is not None:
            raise BufferError("memory of another process is in no stream; pass stream=None")
        return dlpack_capsule(MemoryUSMDevice(self), self._pointer, self.nbytes, self.__dlpack_device__())


class IPCMemoryHandle(Handle):
    """A handle of USM device memory, through which other processes open the memory.

    Keep it until every consumer has opened the memory: when the last reference to it goes, at :meth:`close` or at the interpreter's
    exit, the handle is put, and its bytes are no longer valid. The memory lives at least as long. Mappings stay valid after
    the put; they become invalid when the memory is freed.

    It can be pickled, and so passed to a process of :mod:`multiprocessing` (``spawn`` or ``forkserver``), which calls :meth:`map`.

    Parameters
    ----------
    usm_memory : dpctl.memory.MemoryUSMDevice
        The memory to share, or a view of it.

    Raises
    ------
    TypeError
        If ``usm_memory`` is not USM device memory.
    ValueError
        If it has a null pointer, or does not own its allocation: memory of another process cannot be shared again.
    RuntimeError
        If the device cannot share memory between processes, or the runtime refuses to.
    """

    def __init__(self, usm_memory: MemoryUSMDevice) -> None:
        if not isinstance(usm_memory, MemoryUSMDevice):
            raise TypeError(f"only USM device memory can be shared between processes, not {type(usm_memory).__name__}")
        if usm_memory._pointer == 0:
            raise ValueError("the USM memory has a null pointer")
        if not _objects.owns_allocation(usm_memory):
            raise ValueError("the USM memory does not own its allocation, so it cannot be shared from here")
        device = usm_memory.sycl_device
        _require_support(device)
        _processes.refuse_forked_child()
        address, data = _native.get_handle(usm_memory._pointer, usm_memory.sycl_context.addressof_ref())
        finalizer = weakref.finalize(self, put_handle, address, usm_memory, os.getpid())
        self._set(data, usm_memory.nbytes, Producer.of(device), finalizer)

    @staticmethod
    def is_available(device: Optional[dpctl.SyclDevice] = None) -> bool:
        """Whether memory can be shared between processes: by the runtime, or by this device of it."""
        if device is None:
            return _native.available()
        return _native.available() and _native.device_shares_memory(device.addressof_ref())

    @staticmethod
    def open(handle_bytes: bytes, device: dpctl.SyclDevice, nbytes: int) -> MemoryIPCDevice:
        """Opens memory of another process.

        Parameters
        ----------
        handle_bytes : bytes
            What :meth:`to_bytes` returned in the producer.
        device : dpctl.SyclDevice
            The device that the memory is on, or one that can access its memory. The memory is opened in the default
            context of its platform.
        nbytes : int
            The size of the producer's memory in bytes.

        Returns
        -------
        MemoryIPCDevice
            The memory, with ``nbytes`` bytes.

        Raises
        ------
        TypeError
            If an argument has another type.
        ValueError
            If ``nbytes`` is not positive, or larger than what the handle is for.
        RuntimeError
            If the device cannot share memory or cannot access that of the producer's device, the bytes are not those of
            a handle, the producer has ended or may not be accessed, or this process was forked after the runtime was
            started.
        """
        require_types(handle_bytes, device)
        _processes.refuse_forked_child()
        _require_support(device)
        if nbytes <= 0:
            raise ValueError(f"nbytes must be positive, not {nbytes}")
        head = head_of(handle_bytes)
        hint = ""
        if head is not None:
            if head.pid <= 0 or head.available <= 0:
                raise RuntimeError("the memory cannot be opened: the bytes are not those of a handle")
            if nbytes > head.available:
                raise ValueError(f"nbytes is {nbytes}, but the handle is for {head.available} bytes at most")
            unreachable = _processes.why_unreachable(head.pid)
            if unreachable is not None:
                raise RuntimeError(f"the memory cannot be opened: {unreachable}")
            hint = _processes.why_refused(head.pid)
        context = device.sycl_platform.default_context
        queue = dpctl.SyclQueue(context, device)
        try:
            pointer = _native.open_handle(handle_bytes, context.addressof_ref(), device.addressof_ref())
        except RuntimeError as error:
            raise RuntimeError(f"the memory cannot be opened: {error}{hint}") from None
        memory = MemoryIPCDevice._on(_Mapping(pointer, context), nbytes, queue)
        memory._alone = _references(memory)
        return memory

    def map(self, device: Optional[dpctl.SyclDevice] = None) -> MemoryIPCDevice:
        """Opens the memory of this handle, which came from another process by pickle.

        Parameters
        ----------
        device : dpctl.SyclDevice, optional
            The device; without it, the producer's, by its UUID, or if it has none by its filter string, as ``level_zero:gpu:0``.

        Returns and raises what :meth:`open` does, and raises RuntimeError if ``device`` is certainly another device than the producer's.
        Bytes alone do not tell the device: the driver decides whether it can access the memory.
        """
        data = self.to_bytes()
        chosen = self._chosen(device)
        self._device.refuse_another(chosen)
        return IPCMemoryHandle.open(data, chosen, self._nbytes)

    @staticmethod
    def close_mapping(usm_memory: MemoryUSMDevice) -> None:
        """Calls :meth:`MemoryIPCDevice.close`. Raises RuntimeError if the memory was not opened from another process."""
        if not isinstance(usm_memory, MemoryUSMDevice):
            raise TypeError(f"usm_memory must be USM device memory, not {type(usm_memory).__name__}")
        if not isinstance(usm_memory, MemoryIPCDevice):
            raise RuntimeError("close_mapping is for memory that was opened from another process; this is non-IPC memory")
        usm_memory.close()


def _require_support(device: dpctl.SyclDevice) -> None:
    if not _native.available():
        raise RuntimeError(
            "this SYCL runtime cannot share memory between processes: 2026.0 and later can, and earlier ones with Level Zero"
        )
    if not _native.device_shares_memory(device.addressof_ref()):
        raise RuntimeError(f"the device {device.name} cannot share memory between processes (aspect ext_oneapi_ipc_memory)")
