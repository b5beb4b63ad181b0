"""Physical memory that several processes use, each at addresses of its own."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Optional, Type

import dpctl
from dpctl.memory import MemoryUSMDevice

from . import _native, _objects, _processes
from ._handle_bytes import physical_head_of
from ._handles import Handle, Producer, put_handle, require_types

__all__ = ["IPCPhysicalMemory", "IPCPhysicalMemoryHandle"]


class _Reference:
    """A reference to physical memory, given back when nobody needs it any more."""

    def __init__(self, reference: int, context: dpctl.SyclContext) -> None:
        self.address = reference
        self.context = context
        weakref.finalize(self, _delete, reference, context, os.getpid())


class _Range:
    """Addresses at which a part is mapped, freed when nobody uses them any more. The memory lives until then."""

    def __init__(self, memory: _Reference, offset: int, nbytes: int) -> None:
        context = memory.context
        self.pointer = _native.map_physical(memory.address, context.addressof_ref(), offset, nbytes)
        weakref.finalize(self, _unmap, self.pointer, nbytes, memory, os.getpid())


# A forked child has not the memory, only the addresses of its parent.


def _delete(reference: int, context: dpctl.SyclContext, pid: int) -> None:
    # `context` is an argument so that it lives until then.
    if os.getpid() == pid:
        _native.delete_physical(reference)


def _unmap(pointer: int, nbytes: int, memory: _Reference, pid: int) -> None:
    if os.getpid() == pid:
        _native.unmap_physical(pointer, nbytes, memory.context.addressof_ref())


class IPCPhysicalMemory:
    """Physical device memory that can be shared. It has no address until a part of it is mapped by :meth:`map`.

    It is freed, or closed if it is another process's, when this object, all that was mapped of it, and all handles of it are gone.

    Parameters
    ----------
    nbytes : int
        The size in bytes, a multiple of :meth:`granularity`.
    queue : dpctl.SyclQueue, optional
        The memory is on the device and in the context of this queue; without it, of a new default queue.

    Raises
    ------
    TypeError
        If ``queue`` is not a queue.
    ValueError
        If ``nbytes`` is not a positive multiple of the granularity.
    RuntimeError
        If the runtime or the device cannot share physical memory, has none left, or this process was forked after the runtime was
        started.
    """

    def __init__(self, nbytes: int, queue: Optional[dpctl.SyclQueue] = None) -> None:
        if queue is not None and not isinstance(queue, dpctl.SyclQueue):
            raise TypeError(f"queue must be a dpctl.SyclQueue, not {type(queue).__name__}")
        _processes.refuse_forked_child()
        chosen = dpctl.SyclQueue() if queue is None else queue
        context, device = chosen.sycl_context, chosen.sycl_device
        _require_support(device)
        granularity = _native.physical_granularity(context.addressof_ref(), device.addressof_ref())
        if nbytes <= 0 or nbytes % granularity:
            raise ValueError(f"nbytes must be a positive multiple of {granularity}, not {nbytes}")
        reference = _native.create_physical(context.addressof_ref(), device.addressof_ref(), nbytes)
        self._set(reference, chosen)

    def _set(self, reference: int, queue: dpctl.SyclQueue) -> None:
        self._reference: Optional[_Reference] = _Reference(reference, queue.sycl_context)
        self._queue = queue
        self._nbytes = _native.physical_size(reference)

    @staticmethod
    def granularity(device: dpctl.SyclDevice) -> int:
        """Of what sizes and offsets must be multiples on this device, in bytes."""
        context = device.sycl_platform.default_context
        return _native.physical_granularity(context.addressof_ref(), device.addressof_ref())

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._nbytes

    @property
    def sycl_queue(self) -> dpctl.SyclQueue:
        """The queue that the memory was made with, or one that was made for it."""
        return self._queue

    @property
    def sycl_context(self) -> dpctl.SyclContext:
        """The context of the queue."""
        return self._queue.sycl_context

    @property
    def sycl_device(self) -> dpctl.SyclDevice:
        """The device of the queue."""
        return self._queue.sycl_device

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._reference is None

    def _opened(self) -> _Reference:
        if self._reference is None:
            raise ValueError("this physical memory has been closed")
        return self._reference

    def map(self, offset: int = 0, nbytes: Optional[int] = None) -> MemoryUSMDevice:
        """Maps a part of the memory at free addresses of this process, for reading and writing.

        Parameters
        ----------
        offset : int
            Where the part begins, in bytes; a multiple of :meth:`granularity`.
        nbytes : int, optional
            Its size in bytes, a positive multiple of the granularity; without it, all that follows.

        Returns
        -------
        dpctl.memory.MemoryUSMDevice
            The part, as dtype uint8 and shape ``(nbytes,)``. It is unmapped when this object, and all views and arrays on it, are gone.

        Raises
        ------
        ValueError
            If the part is not inside the memory, not a multiple of the granularity, or this object is closed.
        RuntimeError
            If the runtime cannot map it.
        """
        memory = self._opened()
        _processes.refuse_forked_child()
        length = self._nbytes - offset if nbytes is None else nbytes
        granularity = _native.physical_granularity(self.sycl_context.addressof_ref(), self.sycl_device.addressof_ref())
        if offset < 0 or length <= 0 or offset + length > self._nbytes or offset % granularity or length % granularity:
            raise ValueError(
                f"offset {offset} and nbytes {length} must be multiples of {granularity} and inside the {self._nbytes} bytes"
            )
        mapped = _Range(memory, offset, length)
        return _objects.memory_on(mapped.pointer, length, self._queue, mapped)

    def close(self) -> None:
        """Gives this object's share in the memory back. The rest belongs to what was mapped, and to handles. A second call does nothing."""
        self._reference = None

    def __enter__(self) -> IPCPhysicalMemory:
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
        return f"<physical memory of {self._nbytes} bytes{', closed' if self.is_closed else ''}>"


class IPCPhysicalMemoryHandle(Handle):
    """A handle of physical memory, through which other processes open the memory.

    Keep it until every consumer has opened the memory: it is put when the last reference to it goes, at ``close`` or at the
    interpreter's exit. The memory lives at least as long.

    It can be pickled, and so passed to a process of :mod:`multiprocessing` (``spawn`` or ``forkserver``), which calls :meth:`receive`.

    Parameters
    ----------
    physical_memory : IPCPhysicalMemory
        Memory that was made in this process, or opened.

    Raises
    ------
    TypeError
        If ``physical_memory`` has another type.
    ValueError
        If it is closed.
    RuntimeError
        If the runtime refuses to.
    """

    def __init__(self, physical_memory: IPCPhysicalMemory) -> None:
        if not isinstance(physical_memory, IPCPhysicalMemory):
            raise TypeError(f"only IPCPhysicalMemory can be shared here, not {type(physical_memory).__name__}")
        memory = physical_memory._opened()
        _processes.refuse_forked_child()
        address, data = _native.get_physical(memory.address, memory.context.addressof_ref())
        finalizer = weakref.finalize(self, put_handle, address, memory, os.getpid())
        self._set(data, physical_memory.nbytes, Producer.of(physical_memory.sycl_device), finalizer)

    @staticmethod
    def is_available(device: dpctl.SyclDevice) -> bool:
        """Whether physical memory of this device can be shared: with the v2 adapter of the runtime 2026.2."""
        return _native.device_shares_physical_memory(device.addressof_ref())

    @staticmethod
    def open(handle_bytes: bytes, device: dpctl.SyclDevice) -> IPCPhysicalMemory:
        """Opens physical memory of another process, in the default context of the device's platform. Its size is the producer's.

        Parameters
        ----------
        handle_bytes : bytes
            What ``to_bytes`` returned in the producer.
        device : dpctl.SyclDevice
            The device that the memory is on.

        Returns
        -------
        IPCPhysicalMemory
            The memory, which is not mapped yet.

        Raises
        ------
        TypeError
            If an argument has another type.
        RuntimeError
            If the device cannot share physical memory, the bytes are not those of a handle, the producer has ended or may not be
            accessed, or this process was forked after the runtime was started.
        """
        require_types(handle_bytes, device)
        _processes.refuse_forked_child()
        _require_support(device)
        hint = ""
        head = physical_head_of(handle_bytes)
        if head is not None:
            if head.pid <= 0 or head.available <= 0:
                raise RuntimeError("the memory cannot be opened: the bytes are not those of a handle")
            unreachable = _processes.why_unreachable(head.pid)
            if unreachable is not None:
                raise RuntimeError(f"the memory cannot be opened: {unreachable}")
            hint = _processes.why_refused(head.pid)
        context = device.sycl_platform.default_context
        try:
            reference = _native.open_physical(handle_bytes, context.addressof_ref(), device.addressof_ref())
        except RuntimeError as error:
            raise RuntimeError(f"the memory cannot be opened: {error}{hint}") from None
        memory = IPCPhysicalMemory.__new__(IPCPhysicalMemory)
        memory._set(reference, dpctl.SyclQueue(context, device))
        return memory

    def receive(self, device: Optional[dpctl.SyclDevice] = None) -> IPCPhysicalMemory:
        """Opens the memory of this handle, which came from another process by pickle.

        Parameters
        ----------
        device : dpctl.SyclDevice, optional
            The device; without it, the producer's, by its UUID, or if it has none by its filter string, as ``level_zero:gpu:0``.

        Returns and raises what :meth:`open` does.
        """
        data = self.to_bytes()
        return IPCPhysicalMemoryHandle.open(data, self._chosen(device))


def _require_support(device: dpctl.SyclDevice) -> None:
    if not _native.device_shares_physical_memory(device.addressof_ref()):
        raise RuntimeError(
            f"physical memory of the device {device.name} cannot be shared between processes (aspect "
            "ext_oneapi_ipc_physical_memory): the v2 adapter of the runtime 2026.2 can"
        )
