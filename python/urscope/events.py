"""Events that several processes use: one signals them behind its commands, and others wait for that."""

from __future__ import annotations

import os
import weakref
from typing import Any, Optional

import dpctl

from . import _native, _objects, _processes
from ._handles import Handle, Producer, put_handle, require_types

__all__ = ["IPCEvent", "IPCEventHandle"]


class IPCEvent(dpctl.SyclEvent):  # type: ignore[misc]
    """An event that can be shared: a :class:`dpctl.SyclEvent` that can be signalled again, in each process that has it.

    Whoever waits, waits for the last signal before: on the host by ``wait()``, and in a queue by :meth:`wait_in`. A new event counts as
    signalled.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        The event belongs to the context of this queue, and to no single device of it.

    Raises
    ------
    TypeError
        If ``queue`` is not a queue.
    RuntimeError
        If the runtime or a device cannot share events, or this process was forked after the runtime was started.
    """

    #: The context and the device that the handle needs.
    _context: dpctl.SyclContext
    _device: dpctl.SyclDevice

    def __new__(cls, queue: dpctl.SyclQueue) -> IPCEvent:
        if not isinstance(queue, dpctl.SyclQueue):
            raise TypeError(f"queue must be a dpctl.SyclQueue, not {type(queue).__name__}")
        _processes.refuse_forked_child()
        _require_support(queue.sycl_device)
        context = queue.sycl_context
        return cls._around(_native.create_event(context.addressof_ref()), context, queue.sycl_device)

    def __init__(self, queue: dpctl.SyclQueue) -> None:
        """All is done by ``__new__``."""

    @classmethod
    def _around(cls, reference: int, context: dpctl.SyclContext, device: dpctl.SyclDevice) -> IPCEvent:
        make: Any = super().__new__
        event: IPCEvent = make(cls, _objects.event_of(reference)._get_capsule())
        event._context, event._device = context, device
        return event

    @property
    def sycl_context(self) -> dpctl.SyclContext:
        """The context that the event belongs to."""
        return self._context

    @property
    def sycl_device(self) -> dpctl.SyclDevice:
        """The device of the queue that the event was made with, or that it was opened on."""
        return self._device

    def signal(self, queue: dpctl.SyclQueue) -> None:
        """Has a queue signal the event when all that was submitted to it before is done. Does not wait for that.

        The queue is to be one of the event's context; the runtime does not check that.

        Raises TypeError if ``queue`` is not a queue, and RuntimeError with what the runtime says if it refuses.
        """
        self._enqueue(_native.signal_event, queue)

    def wait_in(self, queue: dpctl.SyclQueue) -> None:
        """Has all that is submitted to a queue from now on wait for the last signal before this call. Does not wait itself.

        Raises what :meth:`signal` does.
        """
        self._enqueue(_native.wait_for_event, queue)

    def _enqueue(self, function: Any, queue: dpctl.SyclQueue) -> None:
        if not isinstance(queue, dpctl.SyclQueue):
            raise TypeError(f"queue must be a dpctl.SyclQueue, not {type(queue).__name__}")
        _processes.refuse_forked_child()
        function(queue.addressof_ref(), _objects.reference_of(self))


class IPCEventHandle(Handle):
    """A handle of an event, through which other processes open the event.

    Keep it until every consumer has opened the event: it is put when the last reference to it goes, at ``close`` or at the interpreter's
    exit. The event lives at least as long. Opened events stay valid after the put.

    It can be pickled, and so passed to a process of :mod:`multiprocessing` (``spawn`` or ``forkserver``), which calls :meth:`receive`.

    Parameters
    ----------
    event : IPCEvent
        An event that was made in this process.

    Raises
    ------
    TypeError
        If ``event`` is not an :class:`IPCEvent`; other events of dpctl cannot be shared.
    RuntimeError
        If the runtime refuses to, as for an event that was opened from another process.
    """

    def __init__(self, event: IPCEvent) -> None:
        if not isinstance(event, IPCEvent):
            raise TypeError(f"only an IPCEvent can be shared between processes, not {type(event).__name__}")
        _processes.refuse_forked_child()
        context = event.sycl_context
        address, data = _native.get_event(_objects.reference_of(event), context.addressof_ref())
        finalizer = weakref.finalize(self, put_handle, address, event, os.getpid())
        self._set(data, 0, Producer.of(event.sycl_device), finalizer)

    @staticmethod
    def is_available(device: dpctl.SyclDevice) -> bool:
        """Whether events of this device can be shared: with the v2 adapter of the runtime 2026.2."""
        return _native.device_shares_events(device.addressof_ref())

    @staticmethod
    def open(handle_bytes: bytes, device: dpctl.SyclDevice) -> IPCEvent:
        """Opens an event of another process, in the default context of the device's platform.

        Parameters
        ----------
        handle_bytes : bytes
            What ``to_bytes`` returned in the producer.
        device : dpctl.SyclDevice
            The device whose queues will use it.

        Returns
        -------
        IPCEvent
            The event. It is closed with its last reference.

        Raises
        ------
        TypeError
            If an argument has another type.
        RuntimeError
            If the device cannot share events, the bytes are not those of a handle, the producer has ended or may not be accessed, or
            this process was forked after the runtime was started.
        """
        require_types(handle_bytes, device)
        _processes.refuse_forked_child()
        _require_support(device)
        context = device.sycl_platform.default_context
        try:
            reference = _native.open_event(handle_bytes, context.addressof_ref())
        except RuntimeError as error:
            raise RuntimeError(
                f"the event cannot be opened: {error} (that is also the answer to bytes that are no handle, to a handle that was put, and "
                "where the producer has ended or may not be accessed)"
            ) from None
        return IPCEvent._around(reference, context, device)

    def receive(self, device: Optional[dpctl.SyclDevice] = None) -> IPCEvent:
        """Opens the event of this handle, which came from another process by pickle.

        Parameters
        ----------
        device : dpctl.SyclDevice, optional
            The device; without it, the producer's, by its UUID, or if it has none by its filter string, as ``level_zero:gpu:0``.

        Returns and raises what :meth:`open` does.
        """
        data = self.to_bytes()
        return IPCEventHandle.open(data, self._chosen(device))


def _require_support(device: dpctl.SyclDevice) -> None:
    if not _native.device_shares_events(device.addressof_ref()):
        raise RuntimeError(
            f"events of the device {device.name} cannot be shared between processes (aspect ext_oneapi_ipc_event): "
            "the v2 adapter of the runtime 2026.2 can"
        )
