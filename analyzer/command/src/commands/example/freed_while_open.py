"""A mistake to try urscope with: memory is freed while another process has it open.

    urscope run --device software -- python3 freed_while_open.py

The producer frees its memory before the consumer has closed it. To fix it, move the `del` to the end of produce.
"""

import multiprocessing

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening


def consume(producer):
    memory = producer.recv().map()
    producer.send("open")
    producer.recv()
    memory.close()
    producer.send("closed")


def produce(consumer, process):
    memory = MemoryUSMDevice(8 << 20, queue=dpctl.SyclQueue())
    handle = IPCMemoryHandle(memory)
    consumer.send(handle)
    consumer.recv()  # it is open
    handle.close()
    del memory, handle  # the last references: this frees the memory
    consumer.send("close it")
    consumer.recv()  # it is closed


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=consume, args=(there,))
    process.start()
    permit_opening()
    produce(here, process)
    process.join()
