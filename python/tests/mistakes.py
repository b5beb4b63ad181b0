"""Programs with one mistake each, by name: what Python cannot prevent, and what urscope must find.

    python mistakes.py NAME
"""

import multiprocessing
import os
import pickle
import sys

import dpctl
import exchange
from dpctl.memory import MemoryUSMDevice
from urscope import IPCEvent, IPCEventHandle, IPCMemoryHandle, IPCPhysicalMemory, IPCPhysicalMemoryHandle

BYTES = bytes(range(256)) * 16


def new_memory():
    # Larger than what the runtime keeps in its pools, so that freed memory is gone.
    memory = MemoryUSMDevice(8 << 20, queue=dpctl.SyclQueue())
    memory.memset(7)
    return memory


def start(target, *arguments):
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *arguments))
    process.start()
    return process, here


def hold(pipe):
    """Opens what it receives, and closes it when it is told to."""
    mapped = pipe.recv().map()
    pipe.send("open")
    pipe.recv()
    mapped.close()


def open_and_report(pipe):
    """Opens what it receives, if it can."""
    try:
        pipe.recv().map().close()
        pipe.send("opened")
    except RuntimeError as error:
        pipe.send(f"refused: {error}")


def as_received(handle):
    """What the other process gets of it."""
    return pickle.loads(pickle.dumps(handle))


def use_after_put():
    """The producer puts its handle before the consumer opens it."""
    process, pipe = start(open_and_report)
    memory = new_memory()
    handle = IPCMemoryHandle(memory)
    received = as_received(handle)
    handle.close()
    pipe.send(received)
    pipe.recv()
    process.join()


def freed_while_open():
    """The producer lets its memory go while the consumer has it open."""
    process, pipe = start(hold)
    handle = IPCMemoryHandle(new_memory())
    pipe.send(handle)
    pipe.recv()
    handle.close()
    del handle
    pipe.send("close")
    process.join()


def use_after_free():
    """The consumer opens memory that has been freed."""
    process, pipe = start(open_and_report)
    handle = IPCMemoryHandle(new_memory())
    received = as_received(handle)
    handle.close()
    del handle
    pipe.send(received)
    pipe.recv()
    process.join()


def leaked_mapping():
    """The consumer ends by os._exit, which runs no finalizer."""
    process, pipe = start(exit_with_mapping)
    with IPCMemoryHandle(new_memory()) as handle:
        pipe.send(handle)
        pipe.recv()
        process.join()


def exit_with_mapping(pipe):
    mapped = pipe.recv().map()
    pipe.send(mapped.nbytes)
    os._exit(0)


def leaked_handle():
    """The producer ends by os._exit."""
    process, pipe = start(exchange.produce_and_die, BYTES)
    pipe.recv()
    process.join()


def size_mismatch():
    """The consumer cuts the bytes short."""
    with IPCMemoryHandle(new_memory()) as handle:
        try:
            IPCMemoryHandle.open(handle.to_bytes()[:-8], dpctl.SyclDevice(), 4096)
        except RuntimeError as error:
            print(f"refused: {error}")


def physical_use_after_put():
    """The producer puts its handle of physical memory before the consumer opens it."""
    process, pipe = start(receive_and_report)
    memory = IPCPhysicalMemory(IPCPhysicalMemory.granularity(dpctl.SyclDevice()))
    handle = IPCPhysicalMemoryHandle(memory)
    received = as_received(handle)
    handle.close()
    pipe.send(received)
    pipe.recv()
    process.join()


def receive_and_report(pipe):
    """Opens what it receives, if it can."""
    try:
        pipe.recv().receive()
        pipe.send("opened")
    except RuntimeError as error:
        pipe.send(f"refused: {error}")


def event_use_after_put():
    """The producer lets its event go before the consumer opens it."""
    process, pipe = start(receive_and_report)
    handle = IPCEventHandle(IPCEvent(dpctl.SyclQueue()))
    received = as_received(handle)
    handle.close()
    del handle
    pipe.send(received)
    pipe.recv()
    process.join()


def event_size_mismatch():
    """The consumer cuts the bytes of an event short."""
    with IPCEventHandle(IPCEvent(dpctl.SyclQueue())) as handle:
        try:
            IPCEventHandle.open(handle.to_bytes()[:-8], dpctl.SyclDevice())
        except RuntimeError as error:
            print(f"refused: {error}")


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
