"""A mistake to try urscope with: handle data is opened after its put.

    urscope run --device software -- python3 use_after_put.py

The producer puts its handle before the consumer has opened it. To fix it, put after the consumer has opened the memory.
"""

import multiprocessing
import pickle

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening


def consume(producer):
    received = producer.recv()
    try:
        received.map().close()
        producer.send("opened")
    except RuntimeError as error:
        producer.send(f"refused: {error}")


def produce(consumer, process):
    memory = MemoryUSMDevice(8 << 20, queue=dpctl.SyclQueue())
    handle = IPCMemoryHandle(memory)
    received = pickle.loads(pickle.dumps(handle))
    handle.close()
    consumer.send(received)
    print(consumer.recv())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=consume, args=(there,))
    process.start()
    permit_opening()
    produce(here, process)
    process.join()
