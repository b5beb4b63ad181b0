"""Physical memory and events, in one process and between two."""

import gc
import multiprocessing
import os
import pickle
import sys
import unittest
from pathlib import Path

import dpctl
import exchange
from dpctl.memory import MemoryUSMDevice
from urscope import (
    IPCEvent,
    IPCEventHandle,
    IPCMemoryHandle,
    IPCPhysicalMemory,
    IPCPhysicalMemoryHandle,
    permit_opening,
)


CYCLES = 20_000


def granule():
    return IPCPhysicalMemory.granularity(dpctl.SyclDevice())


def start(target):
    context = multiprocessing.get_context("spawn")
    permit_opening()
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there,))
    process.start()
    return process, here


def held():
    """The open descriptors, and the bytes of memory that belongs to no file."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    anonymous = next(line for line in status if line.startswith("RssAnon:"))
    return len(os.listdir("/proc/self/fd")), int(anonymous.split()[1]) << 10


class Case(unittest.TestCase):
    def end(self, process):
        process.join()
        self.assertEqual(process.exitcode, 0)


class PhysicalMemory(Case):
    def test_two_processes_use_the_same_memory(self):
        process, pipe = start(exchange.use_physical)
        memory = IPCPhysicalMemory(4 * granule())
        content = bytes(range(251)) * (memory.nbytes // 251 + 1)
        mapped = memory.map()
        mapped.copy_from_host(content[: memory.nbytes])
        with IPCPhysicalMemoryHandle(memory) as handle:
            self.assertEqual(handle.nbytes, memory.nbytes)
            pipe.send(handle)
            self.assertEqual(pipe.recv(), content[: memory.nbytes])
        self.end(process)
        self.assertEqual(mapped.tobytes(), content[: memory.nbytes][::-1])

    def test_what_is_mapped_is_device_memory_and_keeps_the_memory(self):
        memory = IPCPhysicalMemory(2 * granule(), queue=dpctl.SyclQueue())
        mapped = memory.map()
        self.assertIs(type(mapped), MemoryUSMDevice)
        self.assertEqual((mapped.get_usm_type(), mapped.nbytes), ("device", 2 * granule()))
        second = memory.map(granule(), granule())
        mapped.memset(5)
        self.assertEqual(second.tobytes(), bytes([5]) * granule())
        view = MemoryUSMDevice(mapped)
        memory.close()
        memory.close()
        del mapped, second
        gc.collect()
        self.assertEqual(view.tobytes(), bytes([5]) * 2 * granule())
        self.assertTrue(memory.is_closed)
        for use in (memory.map, lambda: IPCPhysicalMemoryHandle(memory), memory.__enter__):
            with self.assertRaisesRegex(ValueError, "has been closed"):
                use()
        # It does not own its allocation, as USM does.
        with self.assertRaises(ValueError):
            IPCMemoryHandle(view)

    def test_the_handle_keeps_the_memory(self):
        memory = IPCPhysicalMemory(granule())
        memory.map().memset(3)
        handle = IPCPhysicalMemoryHandle(memory)
        del memory
        gc.collect()
        with IPCPhysicalMemoryHandle.open(handle.to_bytes(), dpctl.SyclDevice()) as opened:
            self.assertEqual(opened.nbytes, granule())
            self.assertEqual(opened.map().tobytes(), bytes([3]) * granule())
        handle.close()
        with self.assertRaisesRegex(RuntimeError, "already been closed"):
            handle.to_bytes()

    def test_sizes_that_do_not_fit_are_value_errors(self):
        for nbytes in (0, -1, granule() // 2, granule() + 1):
            with self.subTest(nbytes), self.assertRaisesRegex(ValueError, "positive multiple"):
                IPCPhysicalMemory(nbytes)
        memory = IPCPhysicalMemory(2 * granule())
        for part in ((1, granule()), (0, 1), (0, 0), (-granule(), granule()), (granule(), 2 * granule()), (2 * granule(), None)):
            with self.subTest(part), self.assertRaisesRegex(ValueError, "inside"):
                memory.map(*part)

    def test_other_types_are_type_errors(self):
        usm = MemoryUSMDevice(4096, queue=dpctl.SyclQueue())
        for wrong in (lambda: IPCPhysicalMemoryHandle(usm), lambda: IPCPhysicalMemory(granule(), queue=1)):
            with self.assertRaises(TypeError):
                wrong()
        for data, device in ((bytearray(16), dpctl.SyclDevice()), (b"", None)):
            with self.assertRaises(TypeError):
                IPCPhysicalMemoryHandle.open(data, device)

    def test_bytes_that_are_no_handle_are_refused(self):
        with IPCPhysicalMemoryHandle(IPCPhysicalMemory(granule())) as handle:
            data = handle.to_bytes()
            for wrong in (b"", data[:-1], data + b"\0", bytes(len(data)), b"\xff" * len(data)):
                with self.subTest(wrong), self.assertRaisesRegex(RuntimeError, "cannot be opened"):
                    IPCPhysicalMemoryHandle.open(wrong, dpctl.SyclDevice())
            self.assertEqual(IPCPhysicalMemoryHandle.open(data, dpctl.SyclDevice()).nbytes, granule())

    def test_a_producer_that_died_is_refused(self):
        process, pipe = start(exchange.produce_physical_and_die)
        handle = pipe.recv()
        process.join()
        with self.assertRaisesRegex(RuntimeError, f"its producer, process {process.pid}, has ended"):
            handle.receive()


class Events(Case):
    def test_a_consumer_waits_for_each_signal(self):
        process, pipe = start(exchange.wait_for_signals)
        queue = dpctl.SyclQueue()
        memory = MemoryUSMDevice(1 << 16, queue=queue)
        event = IPCEvent(queue)
        with IPCMemoryHandle(memory) as memory_handle, IPCEventHandle(event) as event_handle:
            self.assertEqual(event_handle.nbytes, 0)
            pipe.send((memory_handle, event_handle))
            self.assertEqual(pipe.recv(), "open")
            for number, way in enumerate(("host", "queue", "queue", "host"), start=1):
                memory.memset(number)
                event.signal(memory.sycl_queue)
                pipe.send(way)
                self.assertEqual(pipe.recv(), bytes([number]) * memory.nbytes)
            pipe.send(None)
            self.assertEqual(pipe.recv(), "signalled")
            event.wait()
            self.assertEqual(memory.tobytes(), bytes([9]) * memory.nbytes)
            pipe.send("done")
            self.end(process)

    def test_it_is_an_event_of_dpctl(self):
        queue = dpctl.SyclQueue()
        event = IPCEvent(queue)
        self.assertIsInstance(event, dpctl.SyclEvent)
        self.assertEqual((event.sycl_context, event.sycl_device), (queue.sycl_context, queue.sycl_device))
        event.signal(queue)
        event.wait()
        self.assertEqual(event.execution_status, dpctl.event_status_type.complete)

    def test_two_handles_of_one_event_are_put_apart(self):
        event = IPCEvent(dpctl.SyclQueue())
        one, other = IPCEventHandle(event), IPCEventHandle(event)
        one.close()
        opened = IPCEventHandle.open(other.to_bytes(), dpctl.SyclDevice())
        other.close()
        self.assertIsInstance(opened, IPCEvent)
        with self.assertRaisesRegex(RuntimeError, "already been closed"):
            pickle.dumps(other)

    def test_an_opened_event_is_not_shared_again(self):
        with IPCEventHandle(IPCEvent(dpctl.SyclQueue())) as handle:
            opened = IPCEventHandle.open(handle.to_bytes(), dpctl.SyclDevice())
            with self.assertRaisesRegex(RuntimeError, "cannot be shared"):
                IPCEventHandle(opened)

    def test_other_types_are_type_errors(self):
        queue = dpctl.SyclQueue()
        event = IPCEvent(queue)
        wrong_uses = (
            lambda: IPCEventHandle(dpctl.SyclEvent()),
            lambda: IPCEvent(None),
            lambda: event.signal(None),
            lambda: event.wait_in(event),
            lambda: IPCEventHandle.open("", dpctl.SyclDevice()),
            lambda: IPCEventHandle.open(b"", queue),
        )
        for wrong in wrong_uses:
            with self.assertRaises(TypeError):
                wrong()

    def test_bytes_that_are_no_handle_are_refused(self):
        with IPCEventHandle(IPCEvent(dpctl.SyclQueue())) as handle:
            data = handle.to_bytes()
            for wrong in (b"", data[:-1], data + b"\0", bytes(len(data)), b"\xff" * len(data)):
                with self.subTest(len(wrong)), self.assertRaisesRegex(RuntimeError, "cannot be opened"):
                    IPCEventHandle.open(wrong, dpctl.SyclDevice())
            self.assertIsInstance(IPCEventHandle.open(data, dpctl.SyclDevice()), IPCEvent)

    def test_a_producer_that_died_is_refused(self):
        process, pipe = start(exchange.produce_an_event_and_die)
        handle = pipe.recv()
        process.join()
        with self.assertRaisesRegex(RuntimeError, "the producer has ended"):
            handle.receive()


class Forks(Case):
    def test_a_forked_child_is_told_why(self):
        memory, event = IPCPhysicalMemory(granule()), IPCEvent(dpctl.SyclQueue())
        child = os.fork()
        if child == 0:
            refused = 0
            uses = (
                lambda: IPCPhysicalMemoryHandle(memory),
                memory.map,
                lambda: IPCEventHandle(event),
                lambda: IPCEvent(memory.sycl_queue),
                lambda: event.signal(memory.sycl_queue),
            )
            for use in uses:
                try:
                    use()
                except RuntimeError as error:
                    refused += "was forked" in str(error)
            os._exit(0 if refused == len(uses) else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


class Cycles(unittest.TestCase):
    """Measured without urscope, which keeps tables of its own."""

    def assert_nothing_is_lost(self, cycle, cycles):
        for _ in range(cycles // 4):
            cycle()
        descriptors, resident = held()
        for _ in range(cycles):
            cycle()
        now_descriptors, now_resident = held()
        self.assertEqual(now_descriptors, descriptors)
        self.assertLess((now_resident - resident) / cycles, 3, "bytes a cycle")

    def test_no_physical_memory_is_lost(self):
        device, size = dpctl.SyclDevice(), granule()
        queue = dpctl.SyclQueue()

        def cycle():
            memory = IPCPhysicalMemory(size, queue=queue)
            with IPCPhysicalMemoryHandle(memory) as handle:
                IPCPhysicalMemoryHandle.open(handle.to_bytes(), device).map()

        self.assert_nothing_is_lost(cycle, CYCLES)

    def test_no_event_is_lost(self):
        device, queue = dpctl.SyclDevice(), dpctl.SyclQueue()

        def cycle():
            event = IPCEvent(queue)
            with IPCEventHandle(event) as handle:
                IPCEventHandle.open(handle.to_bytes(), device)

        self.assert_nothing_is_lost(cycle, CYCLES)


class Unavailable(unittest.TestCase):
    """The v1 adapter shares neither."""

    def test_it_is_said(self):
        device, queue = dpctl.SyclDevice(), dpctl.SyclQueue()
        self.assertIs(IPCPhysicalMemoryHandle.is_available(device), False)
        self.assertIs(IPCEventHandle.is_available(device), False)
        with self.assertRaisesRegex(RuntimeError, "physical memory of the device .* cannot be shared"):
            IPCPhysicalMemory(1 << 21, queue=queue)
        with self.assertRaisesRegex(RuntimeError, "events of the device .* cannot be shared"):
            IPCEvent(queue)
        for open_it in (IPCPhysicalMemoryHandle.open, IPCEventHandle.open):
            with self.assertRaisesRegex(RuntimeError, "cannot be shared"):
                open_it(b"", device)


#: The argument of the program says which tests.
CHOICES = {
    "available": ("PhysicalMemory", "Events", "Forks"),
    "exchange": ("PhysicalMemory.test_two_processes_use_the_same_memory", "Events.test_a_consumer_waits_for_each_signal"),
    "cycles": ("Cycles",),
    "unavailable": ("Unavailable",),
}

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromNames(CHOICES[sys.argv[1]], module=sys.modules["__main__"])
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
