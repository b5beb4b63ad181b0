"""Ranks send device memory to each other through MPI, which shares it between processes through Level Zero.

    mpi_ring.py          nothing is wrong
    mpi_ring.py reduce   nothing is wrong, with sums of all ranks, which take kernels
    mpi_ring.py stale    rank 1 keeps a handle of rank 0, and opens it again when its memory is freed, as a cache does
"""

import ctypes
import os
import sys

from mpi4py import MPI

SIZES = (8, 4096, 65536, 1 << 20)
KINDS = ("device", "host", "shared")

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

    def allocate(self, size: int, kind: str = "device") -> ctypes.c_void_p:
        memory, device, host = ctypes.c_void_p(), Description(0x15), Description(0x16)
        descriptions = {"device": [device], "host": [host], "shared": [device, host]}[kind]
        arguments = [self.context, *map(ctypes.byref, descriptions), ctypes.c_size_t(size), ctypes.c_size_t(64)]
        if kind != "host":
            arguments.append(self.device)
        self.call(f"zeMemAlloc{kind.capitalize()}", *arguments, ctypes.byref(memory))
        return memory

    def free(self, memory: ctypes.c_void_p) -> None:
        self.call("zeMemFree", self.context, memory)


class Witness:
    """Counts calls independently of urscope: by a tracer of the loader (zel_tracing_api.h). It sees no functions that Intel's driver
    has beside those of the specification."""

    FUNCTIONS = ("zeMemGetIpcHandle", "zeMemPutIpcHandle", "zeMemOpenIpcHandle", "zeMemCloseIpcHandle")

    def __init__(self, device: Device) -> None:
        self.counts, tracer = dict.fromkeys(self.FUNCTIONS, 0), ctypes.c_void_p()
        device.call("zelEnableTracingLayer")
        device.call("zelTracerCreate", ctypes.byref(Description(1)), ctypes.byref(tracer))
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
        self.callbacks = {name: callback(lambda *_, name=name: self.count(name)) for name in self.FUNCTIONS}
        for name, function in self.callbacks.items():
            device.call(f"zelTracer{name[2:]}RegisterCallback", tracer, 0, function)
        device.call("zelTracerSetEnabled", tracer, ctypes.c_uint8(1))

    def count(self, name: str) -> None:
        self.counts[name] += 1

    def seen(self) -> str:
        return "called: " + " ".join(f"{name} {count}" for name, count in self.counts.items()) + "\n"


def buffer(memory: ctypes.c_void_p, size: int, kind: MPI.Datatype = MPI.BYTE) -> list:
    return [MPI.memory.fromaddress(memory.value, size), kind]


def exchange(device: Device, size: int, turn: int, kind: str) -> bool:
    """Sends one buffer around the ring; whether the right bytes came."""
    mine, theirs = device.allocate(size, kind), device.allocate(size, kind)
    ctypes.memset(mine, comm.rank + 1 + turn, size)
    ctypes.memset(theirs, 0, size)
    left = (comm.rank - 1) % comm.size
    request = comm.Irecv(buffer(theirs, size), source=left)
    comm.Send(buffer(mine, size), dest=(comm.rank + 1) % comm.size)
    request.Wait()
    right = ctypes.string_at(theirs, size) == bytes([left + 1 + turn]) * size
    device.free(mine)
    device.free(theirs)
    return right


def collect(device: Device, size: int) -> bool:
    """A broadcast, an allgather and an alltoall; whether the right bytes came."""
    mine, all_of_mine, theirs = device.allocate(size), device.allocate(size * comm.size), device.allocate(size * comm.size)
    ctypes.memset(mine, 7 if comm.rank == 0 else 0, size)
    comm.Bcast(buffer(mine, size), root=0)
    right = ctypes.string_at(mine, size) == bytes([7]) * size
    ctypes.memset(mine, comm.rank + 1, size)
    comm.Allgather(buffer(mine, size), buffer(theirs, size * comm.size))
    right &= ctypes.string_at(theirs, size * comm.size) == b"".join(bytes([rank + 1]) * size for rank in range(comm.size))
    for rank in range(comm.size):
        ctypes.memset(all_of_mine.value + rank * size, 16 * comm.rank + rank, size)
    comm.Alltoall(buffer(all_of_mine, size * comm.size), buffer(theirs, size * comm.size))
    expected = b"".join(bytes([16 * rank + comm.rank]) * size for rank in range(comm.size))
    right &= ctypes.string_at(theirs, size * comm.size) == expected
    for memory in (mine, all_of_mine, theirs):
        device.free(memory)
    return right


def reduce(device: Device, count: int) -> bool:
    """The sum of all ranks' numbers; whether it is right."""
    mine, sums = device.allocate(4 * count), device.allocate(4 * count)
    numbers = (ctypes.c_int * count)(*(comm.rank + at for at in range(count)))
    ctypes.memmove(mine, numbers, 4 * count)
    comm.Allreduce(buffer(mine, 4 * count, MPI.INT), buffer(sums, 4 * count, MPI.INT))
    others = comm.size * (comm.size - 1) // 2
    expected = (ctypes.c_int * count)(*(others + comm.size * at for at in range(count)))
    right = ctypes.string_at(sums, 4 * count) == bytes(expected)
    device.free(mine)
    device.free(sums)
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
    witness = Witness(device)
    rings = [(size, turn, kind) for kind in KINDS for size in SIZES for turn in range(2)]
    right = all([exchange(device, *ring) for ring in rings] + [collect(device, size) for size in SIZES])
    if "reduce" in sys.argv:
        right &= all([reduce(device, count) for count in (2, 1024, 1 << 18)])
    if "stale" in sys.argv:
        open_stale(device)
    comm.Barrier()
    # The ranks take turns, so that no two lines are mixed.
    for rank in range(comm.size):
        if rank == comm.rank:
            print(f"rank {rank}: {'right' if right else 'wrong'}", flush=True)
        comm.Barrier()
    MPI.Finalize()
    os.write(1, witness.seen().encode())


main()
