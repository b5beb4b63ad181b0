"""A producer feeds a consumer a stream of arrays, through a ring of device memory that both processes use.

    python ring.py [--arrays 200] [--nbytes 4194304] [--slots 4]

Both ways begin with an array in the producer's device memory, and end with it in the consumer's:

* through a ring: the producer shares a few allocations once. For each array it copies into a free one and says which; the consumer
  copies out of it and says that it is free again. The arrays stay on the device.
* through host memory: the producer copies each array to the host and sends it through a pipe; the consumer copies it to the device.
"""

import argparse
import multiprocessing
import time

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening

#: The consumer looks at every array of this many.
LOOK_AT = 16


def look(number, array):
    """Every byte of an array is its number, so a wrong order or a torn array would show."""
    if number % LOOK_AT == 0:
        content = array.copy_to_host()
        assert (content == number % 251).all(), f"array {number} has other bytes"


def consume_from_ring(handles, filled, free, arrays):
    own = MemoryUSMDevice(handles[0].nbytes, queue=dpctl.SyclQueue())
    # Opened once for all arrays, and closed when the list is gone.
    slots = [handle.map() for handle in handles]
    free.send(None)
    for number in range(arrays):
        slot = filled.recv()
        own.copy_from_device(slots[slot])
        free.send(slot)
        look(number, own)
    del slots
    free.send(None)


def through_ring(context, arrays, nbytes, slots):
    """Seconds for all arrays."""
    queue = dpctl.SyclQueue()
    source = MemoryUSMDevice(nbytes, queue=queue)
    ring = [MemoryUSMDevice(nbytes, queue=queue) for _ in range(slots)]
    handles = [IPCMemoryHandle(memory) for memory in ring]
    filled_out, filled_in = context.Pipe(duplex=False)
    free_out, free_in = context.Pipe(duplex=False)
    consumer = context.Process(target=consume_from_ring, args=(handles, filled_out, free_in, arrays))
    consumer.start()
    free_out.recv()
    # The consumer has opened all of them, so the handles are not needed any more.
    for handle in handles:
        handle.close()
    began = time.perf_counter()
    unused = list(range(slots))
    for number in range(arrays):
        slot = unused.pop() if unused else free_out.recv()
        source.memset(number % 251)
        ring[slot].copy_from_device(source)
        filled_in.send(slot)
    while free_out.recv() is not None:
        pass
    took = time.perf_counter() - began
    # The memory may go only now: the consumer has closed it.
    consumer.join()
    return took


def consume_from_pipe(data, done, arrays, nbytes):
    own = MemoryUSMDevice(nbytes, queue=dpctl.SyclQueue())
    received = bytearray(nbytes)
    done.send(None)
    for number in range(arrays):
        data.recv_bytes_into(received)
        own.copy_from_host(received)
        look(number, own)
    done.send(None)


def through_host(context, arrays, nbytes):
    """Seconds for all arrays."""
    source = MemoryUSMDevice(nbytes, queue=dpctl.SyclQueue())
    on_host = bytearray(nbytes)
    data_out, data_in = context.Pipe(duplex=False)
    done_out, done_in = context.Pipe(duplex=False)
    consumer = context.Process(target=consume_from_pipe, args=(data_out, done_in, arrays, nbytes))
    consumer.start()
    done_out.recv()
    began = time.perf_counter()
    for number in range(arrays):
        source.memset(number % 251)
        source.copy_to_host(on_host)
        data_in.send_bytes(on_host)
    done_out.recv()
    took = time.perf_counter() - began
    consumer.join()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arrays", type=int, default=200)
    parser.add_argument("--nbytes", type=int, default=4 << 20)
    parser.add_argument("--slots", type=int, default=4)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    permit_opening()
    for name, seconds in (
        ("through a ring of device memory", through_ring(context, given.arrays, given.nbytes, given.slots)),
        ("through host memory", through_host(context, given.arrays, given.nbytes)),
    ):
        rate = given.arrays * given.nbytes / seconds / 1e9
        print(f"{name}: {given.arrays} arrays of {given.nbytes} bytes in {seconds:.3f} s, {rate:.2f} GB/s")


if __name__ == "__main__":
    main()
