"""A mistake to try urscope with: handle data is opened after its memory was freed.

    urscope run --device software -- python3 use_after_free.py

The producer frees its memory before the consumer has opened it. To fix it, free after the consumer has closed its mapping.
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
    del memory, handle  # the last references: this frees the memory
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
