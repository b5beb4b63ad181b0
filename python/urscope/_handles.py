"""What the handles of all kinds of objects have in common."""

from __future__ import annotations

import os
from functools import lru_cache
from types import TracebackType
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Type, TypeVar

import dpctl

from . import _native, _processes

Self = TypeVar("Self", bound="Handle")


def put_handle(data: int, shared: object, pid: int) -> None:
    """Puts handle data. ``shared`` is an argument so that the object lives until its handle is put."""
    # A forked child has only copies of its parent's data.
    if os.getpid() == pid:
        _native.free_handle_data(data)


def require_types(handle_bytes: bytes, device: dpctl.SyclDevice) -> None:
    """Raises TypeError for arguments of another type."""
    if not isinstance(handle_bytes, bytes):
        raise TypeError(f"handle_bytes must be bytes, not {type(handle_bytes).__name__}")
    if not isinstance(device, dpctl.SyclDevice):
        raise TypeError(f"device must be a dpctl.SyclDevice, not {type(device).__name__}")


class Producer(NamedTuple):
    """The device of the producer, as far as it can be recognized in another process."""

    filter_string: str
    """As ``level_zero:gpu:0``. It may name another device in a process with other settings."""
    uuid: Optional[bytes]
    """Of the whole device, if it is a part of one; None if it has none."""

    @staticmethod
    @lru_cache(maxsize=64)
    def of(device: dpctl.SyclDevice) -> Producer:
        """The identity of a device."""
        return Producer(device.filter_string, _uuid_of(device))

    def _same(self) -> List[dpctl.SyclDevice]:
        """The devices of this process with that UUID."""
        return [device for device in dpctl.get_devices(backend="level_zero") if _uuid_of(device) == self.uuid]

    def find(self) -> dpctl.SyclDevice:
        """The device in this process. Raises RuntimeError if this process does not see it."""
        same = [] if self.uuid is None else self._same()
        if len(same) == 1:
            return same[0]
        if self.uuid is not None and not same:
            raise RuntimeError(
                f"this process does not see the producer's device, which is {self.filter_string} there: check "
                "ONEAPI_DEVICE_SELECTOR and ZE_AFFINITY_MASK, or name the device to open on"
            )
        try:
            return dpctl.SyclDevice(self.filter_string)
        except dpctl.SyclDeviceCreationError as error:
            raise RuntimeError(f"this process has no device {self.filter_string}, which is the producer's: {error}") from None

    def refuse_another(self, device: dpctl.SyclDevice) -> None:
        """Raises RuntimeError if a device is certainly another one: this process sees the producer's, and it is not this one."""
        if self.uuid is None or _uuid_of(device) in (None, self.uuid):
            return
        for same in self._same():
            raise RuntimeError(
                f"the memory cannot be opened: it is on another device than {device.filter_string}; the producer's is "
                f"{same.filter_string} here"
            )


def _uuid_of(device: dpctl.SyclDevice) -> Optional[bytes]:
    parent = device.parent_device
    while parent is not None:
        device, parent = parent, parent.parent_device
    return _native.device_uuid(device.addressof_ref())


class Handle:
    """A handle of this process, which is put once; or one that came from another process by pickle, which has nothing to put."""

    def _set(self, data: bytes, nbytes: int, device: Producer, put: Optional[Callable[[], object]]) -> None:
        self._data = data
        self._nbytes = nbytes
        self._device = device
        self._put = put
        self._is_closed = False

    @property
    def nbytes(self) -> int:
        """The size of what is shared in bytes; 0 for an event."""
        return self._nbytes

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    def to_bytes(self) -> bytes:
        """The handle data, which ``open`` takes in another process. Their length depends on the kind of object and on the runtime; for
        memory it is 108 bytes with the v1 adapter, 120 with v2, 128 with a runtime before 2026.0.

        They are valid as long as this object is not closed. Raises RuntimeError if it is.
        """
        if self._is_closed:
            raise RuntimeError("the IPC handle has already been closed")
        return self._data

    def close(self) -> None:
        """Puts the handle. No process can open its bytes any more. A second call does nothing."""
        self._is_closed = True
        put, self._put = self._put, None
        if put is not None:
            put()

    def _chosen(self, device: Optional[dpctl.SyclDevice]) -> dpctl.SyclDevice:
        """The device to open on: the given one, or the producer's."""
        _processes.refuse_forked_child()
        return self._device.find() if device is None else device

    def __enter__(self: Self) -> Self:
        self.to_bytes()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        return _received, (type(self), self.to_bytes(), self._nbytes, tuple(self._device))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={len(self._data)}, closed={self._is_closed})"


def _received(kind: Type[Self], data: bytes, nbytes: int, device: Tuple[str, Optional[bytes]]) -> Self:
    """A handle of another process. It has nothing to put."""
    handle = kind.__new__(kind)
    handle._set(data, nbytes, Producer(*device), None)
    return handle
