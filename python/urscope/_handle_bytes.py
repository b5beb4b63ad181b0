"""What the adapters of Level Zero write into handle data of memory, as far as it helps to refuse wrong ones.

libumf begins them with a number, the address and size of the block that holds the memory, the producer and the place of the memory
in the block. The runtime checks neither the producer nor whether the place is inside. urscope's own, which are used with the runtime 2025.3,
begin with a magic number, a version, the kind of the object, the producer, its start, a serial number, and then the size and the place.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

_HEAD = struct.Struct("<QQiiQQ")
#: The sizes of the data that the adapters v1 and v2 make.
_SIZES = (108, 120)

_OWN_HEAD = struct.Struct("<8sHHIQQQQ")
_OWN_SIZE = 128
_OWN_MAGIC = b"urscope\x1a"


#: v2's data of physical memory: the producer, its descriptor and the size.
_PHYSICAL = struct.Struct("<iiQ")


class HandleHead(NamedTuple):
    """The part of handle data that is the same for all of them."""

    pid: int
    """The producer."""
    available: int
    """How many bytes there are from the shared pointer on; negative if the pointer is not in its block."""


def head_of(data: bytes) -> Optional[HandleHead]:
    """The head of handle data; None if they are of another form."""
    if len(data) == _OWN_SIZE and data.startswith(_OWN_MAGIC):
        _magic, _version, _kind, pid, _started, _serial, size, offset = _OWN_HEAD.unpack_from(data)
        return HandleHead(pid, size - offset)
    if len(data) not in _SIZES:
        return None
    _number, _base, pid, _padding, size, offset = _HEAD.unpack_from(data)
    return HandleHead(pid, size - offset)


def physical_head_of(data: bytes) -> Optional[HandleHead]:
    """The same of handle data of physical memory."""
    if len(data) != _PHYSICAL.size:
        return None
    pid, _descriptor, size = _PHYSICAL.unpack(data)
    return HandleHead(pid, size)
