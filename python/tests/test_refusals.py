"""What cannot be opened is an exception that says why, and the process goes on."""

import multiprocessing
import sys
import unittest

import dpctl
import exchange
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle

BYTES = bytes(range(256)) * 16


class Refusals(unittest.TestCase):
    def setUp(self):
        self.device = dpctl.SyclDevice()
        self.memory = MemoryUSMDevice(len(BYTES), queue=dpctl.SyclQueue())
        self.memory.copy_from_host(BYTES)
        self.handle = IPCMemoryHandle(self.memory)
        self.addCleanup(self.handle.close)

    def tearDown(self):
        """Afterwards all goes on as before."""
        with self.handle.map() as mapped:
            self.assertEqual(mapped.tobytes(), BYTES)

    def test_a_size_that_is_not_positive(self):
        for nbytes in (0, -1):
            with self.subTest(nbytes), self.assertRaisesRegex(ValueError, "must be positive"):
                IPCMemoryHandle.open(self.handle.to_bytes(), self.device, nbytes)

    def test_more_bytes_than_there_are(self):
        with self.assertRaisesRegex(ValueError, "bytes at most"):
            IPCMemoryHandle.open(self.handle.to_bytes(), self.device, 1 << 40)

    def test_arguments_of_another_type(self):
        for data, device in ((bytearray(self.handle.to_bytes()), self.device), ("", self.device), (b"", None)):
            with self.subTest(type(data).__name__), self.assertRaises(TypeError):
                IPCMemoryHandle.open(data, device, 4096)

    def test_bytes_of_another_length(self):
        data = self.handle.to_bytes()
        for wrong in (b"", data[:-1], data + b"\0"):
            with self.subTest(len(wrong)), self.assertRaisesRegex(RuntimeError, "cannot be opened"):
                IPCMemoryHandle.open(wrong, self.device, len(BYTES))

    def test_garbage(self):
        length = len(self.handle.to_bytes())
        for byte in (0, 0x55, 0xFF):
            with self.subTest(byte), self.assertRaises((RuntimeError, ValueError)):
                IPCMemoryHandle.open(bytes([byte]) * length, self.device, len(BYTES))

    def test_a_producer_that_died(self):
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=exchange.produce_and_die, args=(there, BYTES))
        process.start()
        handle = here.recv()
        process.join()
        with self.assertRaisesRegex(RuntimeError, f"its producer, process {process.pid}, has ended"):
            handle.map()

    def test_memory_of_a_producer_that_dies_later_can_still_be_closed(self):
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=exchange.produce, args=(there, BYTES))
        process.start()
        mapped = here.recv().map()
        process.kill()
        process.join()
        self.assertEqual(mapped.tobytes(), BYTES)
        mapped.close()

    def test_a_forked_child_is_told_why(self):
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        process = context.Process(target=exchange.try_to_map, args=(there, self.handle))
        process.start()
        errors = here.recv()
        process.join()
        self.assertEqual(process.exitcode, 0)
        self.assertEqual(len(errors), 2)
        for error in errors:
            self.assertIn("was forked", error)
            self.assertIn("spawn", error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
