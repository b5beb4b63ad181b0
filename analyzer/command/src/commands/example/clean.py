"""A program to try urscope with: two processes share memory, without a mistake.

    urscope run --device software -- python3 clean.py
"""

import multiprocessing

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening


def consume(producer):
    with producer.recv().map() as memory:
        producer.send(memory.nbytes)
        producer.recv()
    producer.send("closed")


def produce(consumer):
    memory = MemoryUSMDevice(8 << 20, queue=dpctl.SyclQueue())
    with IPCMemoryHandle(memory) as handle:
        consumer.send(handle)
        consumer.recv()  # it is open
    consumer.send("close it")
    consumer.recv()  # it is closed


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=consume, args=(there,))
    process.start()
    permit_opening()
    produce(here)
    process.join()
