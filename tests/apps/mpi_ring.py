"""Ranks send device memory to each other through MPI, which shares it between processes through Level Zero.

    mpi_ring.py          nothing is wrong
    mpi_ring.py stale    rank 1 keeps a handle of rank 0, and opens it again when its memory is freed, as a cache does
"""

import ctypes
import os
import sys

from mpi4py import MPI

SIZES = (8, 4096, 65536, 1 << 20)

comm = MPI.COMM_WORLD


class Description(ctypes.Structure):
    """ze_context_desc_t, and ze_device_mem_alloc_desc_t, which begins with the same members."""

    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32), ("ordinal", ctypes.c_uint32)]


class Handle(ctypes.Structure):
    """ze_ipc_mem_handle_t. Its first four bytes are a descriptor."""

    _fields_ = [("descriptor", ctypes.c_int), ("rest", ctypes.c_char * 60)]


class Device:
    """The first device, with a context."""

    def __init__(self) -> None:
        self.ze = ctypes.CDLL("libze_loader.so.1")
        self.call("zeInit", 0)
        driver, self.device, self.context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("zeDriverGet", ctypes.byref(ctypes.c_uint32(1)), ctypes.byref(driver))
        self.call("zeDeviceGet", driver, ctypes.byref(ctypes.c_uint32(1)), ctypes.byref(self.device))
        self.call("zeContextCreate", driver, ctypes.byref(Description(0xD)), ctypes.byref(self.context))

    def call(self, name: str, *arguments) -> None:
        result = getattr(self.ze, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} returned {result & 0xFFFFFFFF:#x}")

    def allocate(self, size: int) -> ctypes.c_void_p:
        memory = ctypes.c_void_p()
        size, alignment = ctypes.c_size_t(size), ctypes.c_size_t(64)
        description = ctypes.byref(Description(0x15))
        self.call("zeMemAllocDevice", self.context, description, size, alignment, self.device, ctypes.byref(memory))
        return memory

    def free(self, memory: ctypes.c_void_p) -> None:
        self.call("zeMemFree", self.context, memory)


def exchange(device: Device, size: int, turn: int) -> bool:
    """Sends one buffer around the ring; whether the right bytes came."""
    mine, theirs = device.allocate(size), device.allocate(size)
    ctypes.memset(mine, comm.rank + 1 + turn, size)
    ctypes.memset(theirs, 0, size)
    left = (comm.rank - 1) % comm.size
    request = comm.Irecv([MPI.memory.fromaddress(theirs.value, size), MPI.BYTE], source=left)
    comm.Send([MPI.memory.fromaddress(mine.value, size), MPI.BYTE], dest=(comm.rank + 1) % comm.size)
    request.Wait()
    right = ctypes.string_at(theirs, size) == bytes([left + 1 + turn]) * size
    device.free(mine)
    device.free(theirs)
    return right


def open_stale(device: Device) -> None:
    """Rank 1 opens a handle of rank 0, closes it, and opens it again after the free."""
    if comm.rank == 0:
        memory, handle = device.allocate(4096), Handle()
        device.call("zeMemGetIpcHandle", device.context, memory, ctypes.byref(handle))
        comm.send((os.getpid(), bytes(handle)), dest=1)
        comm.recv(source=1)
        device.free(memory)
        comm.send("freed", dest=1)
        comm.recv(source=1)
    elif comm.rank == 1:
        pid, data = comm.recv(source=0)
        libc = ctypes.CDLL(None, use_errno=True)
        process = libc.syscall(434, pid, 0)  # pidfd_open(2)
        cached = Handle.from_buffer_copy(data)
        cached.descriptor = libc.syscall(438, process, cached.descriptor, 0)  # pidfd_getfd(2)
        opened = ctypes.c_void_p()
        device.call("zeMemOpenIpcHandle", device.context, device.device, cached, 0, ctypes.byref(opened))
        device.call("zeMemCloseIpcHandle", device.context, opened)
        comm.send("closed", dest=0)
        comm.recv(source=0)
        device.ze.zeMemOpenIpcHandle(device.context, device.device, cached, 0, ctypes.byref(opened))
        comm.send("opened", dest=0)


def main() -> None:
    device = Device()
    right = all([exchange(device, size, turn) for size in SIZES for turn in range(2)])
    if "stale" in sys.argv:
        open_stale(device)
    comm.Barrier()
    # The ranks take turns, so that no two lines are mixed.
    for rank in range(comm.size):
        if rank == comm.rank:
            print(f"rank {rank}: {'right' if right else 'wrong'}", flush=True)
        comm.Barrier()


main()
