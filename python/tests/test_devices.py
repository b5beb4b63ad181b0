"""Several devices: a handle knows its own, also where it has another number. Run with ZE_SOFT_DEVICES=2."""

import multiprocessing
import os
import pickle
import sys
import unittest

import dpctl
import exchange
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening

BYTES = bytes(range(256)) * 16


class Devices(unittest.TestCase):
    def setUp(self):
        self.one, self.other = dpctl.get_devices(backend="level_zero")
        memory = MemoryUSMDevice(len(BYTES), queue=dpctl.SyclQueue(self.other))
        memory.copy_from_host(BYTES)
        self.handle = IPCMemoryHandle(memory)
        self.addCleanup(self.handle.close)

    def test_the_producers_device_is_found(self):
        with pickle.loads(pickle.dumps(self.handle)).map() as mapped:
            self.assertEqual(mapped.sycl_device, self.other)
            self.assertEqual(mapped.tobytes(), BYTES)

    def test_another_device_is_an_exception(self):
        received = pickle.loads(pickle.dumps(self.handle))
        with self.assertRaisesRegex(RuntimeError, "on another device than level_zero:gpu:0; the producer's is level_zero:gpu:1"):
            received.map(self.one)
        with received.map(self.other) as mapped:
            self.assertEqual(mapped.tobytes(), BYTES)

    def test_a_peer_opens_the_bytes(self):
        with IPCMemoryHandle.open(self.handle.to_bytes(), self.one, len(BYTES)) as mapped:
            self.assertEqual(mapped.sycl_device, self.one)
            self.assertEqual(mapped.tobytes(), BYTES)

    def test_a_device_that_is_no_peer_is_an_exception(self):
        os.environ["ZE_SOFT_PEERS"] = "off"
        self.addCleanup(os.environ.pop, "ZE_SOFT_PEERS")
        answers = self.consumer(exchange.open_on_each_device, (self.handle.to_bytes(), len(BYTES)))
        self.assertRegex(answers["level_zero:gpu:0"], "RuntimeError.*the memory cannot be opened")
        self.assertEqual(answers["level_zero:gpu:1"], BYTES)

    def consumer_with(self, selector):
        """A process that sees only the devices of a selector, and what it reads."""
        before = os.environ["ONEAPI_DEVICE_SELECTOR"]
        os.environ["ONEAPI_DEVICE_SELECTOR"] = selector
        self.addCleanup(os.environ.__setitem__, "ONEAPI_DEVICE_SELECTOR", before)
        return self.consumer(exchange.name_the_device, self.handle)

    def consumer(self, target, message):
        """A process with this function, and what it answers to a message."""
        permit_opening()
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=target, args=(there,))
        process.start()
        here.send(message)
        answer = here.recv()
        process.join()
        self.assertEqual(process.exitcode, 0)
        return answer

    def test_it_is_found_by_another_number(self):
        self.assertEqual(self.consumer_with("level_zero:1"), ("level_zero:gpu:0", BYTES))

    def test_where_it_is_not_seen_that_is_said(self):
        name, error = self.consumer_with("level_zero:0")
        self.assertEqual(name, "refused")
        self.assertRegex(error, "RuntimeError.*does not see the producer's device, which is level_zero:gpu:1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
