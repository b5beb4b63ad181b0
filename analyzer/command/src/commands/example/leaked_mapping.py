"""A mistake to try urscope with: memory of another process is opened and never closed.

    urscope run --device software -- python3 leaked_mapping.py

The consumer ends without closing what it opened. To fix it, close the mapping.
"""

import multiprocessing
import os

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening


def consume(producer):
    memory = producer.recv().map()
    producer.send(memory.nbytes)
    os._exit(0)  # ends without finalizers, so nothing closes the memory


def produce(consumer, process):
    memory = MemoryUSMDevice(8 << 20, queue=dpctl.SyclQueue())
    handle = IPCMemoryHandle(memory)
    consumer.send(handle)
    consumer.recv()
    process.join()
    handle.close()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=consume, args=(there,))
    process.start()
    permit_opening()
    produce(here, process)
    process.join()
