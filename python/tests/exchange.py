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


def use_physical(pipe):
    """Opens physical memory, maps it in two parts, reads it, turns it round, and answers with what it read."""
    memory = pipe.recv().receive()
    half = memory.nbytes // 2
    parts = [memory.map(0, half), memory.map(half)]
    read = b"".join(part.tobytes() for part in parts)
    for part, content in zip(parts, (read[::-1][:half], read[::-1][half:])):
        part.copy_from_host(content)
    pipe.send(read)


def produce_physical_and_die(pipe):
    """Shares physical memory, and ends at once without cleaning up."""
    from urscope import IPCPhysicalMemory, IPCPhysicalMemoryHandle

    memory = IPCPhysicalMemory(IPCPhysicalMemory.granularity(dpctl.SyclDevice()))
    handle = IPCPhysicalMemoryHandle(memory)
    pipe.send(handle)
    os._exit(0)


def produce_an_event_and_die(pipe):
    """The same with an event."""
    from urscope import IPCEvent, IPCEventHandle

    handle = IPCEventHandle(IPCEvent(dpctl.SyclQueue()))
    pipe.send(handle)
    os._exit(0)


def wait_for_signals(pipe):
    """Opens memory and an event. For each way of waiting that it receives it waits, reads the memory, and answers; then it signals."""
    memory_handle, event_handle = pipe.recv()
    queue = dpctl.SyclQueue()
    own = MemoryUSMDevice(memory_handle.nbytes, queue=queue)
    with memory_handle.map() as shared:
        event = event_handle.receive()
        pipe.send("open")
        while (way := pipe.recv()) is not None:
            if way == "host":
                event.wait()
            else:
                event.wait_in(own.sycl_queue)
            own.copy_from_device(shared)
            pipe.send(own.tobytes())
        shared.memset(9)
        event.signal(shared.sycl_queue)
        pipe.send("signalled")
        pipe.recv()


def open_on_each_device(pipe):
    """Opens the bytes that it receives on each device, and answers with what it read, or the error."""
    handle, size = pipe.recv()
    answers = {}
    for device in dpctl.get_devices(backend="level_zero"):
        try:
            with IPCMemoryHandle.open(handle, device, size) as mapped:
                answers[device.filter_string] = mapped.tobytes()
        except Exception as error:
            answers[device.filter_string] = f"{error!r}"
    pipe.send(answers)


def name_the_device(pipe):
    """Opens what it receives, and answers with the device's name here and with what it read."""
    handle = pipe.recv()
    try:
        with handle.map() as mapped:
            pipe.send((mapped.sycl_device.filter_string, mapped.tobytes()))
    except Exception as error:
        pipe.send(("refused", f"{error!r}"))
