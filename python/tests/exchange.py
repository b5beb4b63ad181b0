"""What the other process does in the tests. Each function is the target of a process and talks through a pipe."""

import os

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle


def consume(pipe):
    """Opens what it receives, reads it, turns it round, and answers with what it read; until it receives None."""
    while (handle := pipe.recv()) is not None:
        with handle.map() as mapped:
            read = mapped.tobytes()
            mapped.copy_from_host(read[::-1])
        pipe.send(read)


def read_bytes(pipe):
    """The same from handle data as dpctl sends them; it only reads."""
    data, nbytes = pipe.recv()
    mapped = IPCMemoryHandle.open(data, dpctl.SyclDevice(), nbytes)
    pipe.send(mapped.tobytes())
    IPCMemoryHandle.close_mapping(mapped)
    pipe.send("closed")


def leave_open(pipe):
    """Leaves its mapping to the end of the interpreter."""
    global kept
    kept = pipe.recv().map()
    pipe.send(kept.tobytes())


def produce(pipe, content):
    """Shares memory, and lives until it receives something."""
    memory = MemoryUSMDevice(len(content), queue=dpctl.SyclQueue())
    memory.copy_from_host(content)
    handle = IPCMemoryHandle(memory)
    pipe.send(handle)
    pipe.recv()


def produce_and_die(pipe, content):
    """Shares memory, and ends at once without cleaning up."""
    memory = MemoryUSMDevice(len(content), queue=dpctl.SyclQueue())
    memory.copy_from_host(content)
    handle = IPCMemoryHandle(memory)
    pipe.send(handle)
    os._exit(0)


def try_to_map(pipe, handle):
    """In a forked child: sends the errors that it gets."""
    errors = []
    for attempt in (
        handle.map,
        lambda: IPCMemoryHandle.open(handle.to_bytes(), dpctl.SyclDevice(), handle.nbytes),
    ):
        try:
            attempt()
        except RuntimeError as error:
            errors.append(str(error))
    pipe.send(errors)
