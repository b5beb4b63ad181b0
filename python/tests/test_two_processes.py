"""The exchange between Python processes, as a program does it that makes no mistake."""

import multiprocessing
import pickle
import subprocess
import sys
import unittest

import dpctl
import exchange
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle, permit_opening

BYTES = bytes(range(256)) * 16


def new_memory():
    memory = MemoryUSMDevice(len(BYTES), queue=dpctl.SyclQueue())
    memory.copy_from_host(BYTES)
    return memory


class Exchange(unittest.TestCase):
    METHODS = ("spawn", "forkserver")

    def start(self, method, target, *arguments):
        context = multiprocessing.get_context(method)
        here, there = context.Pipe()
        process = context.Process(target=target, args=(there, *arguments))
        process.start()
        there.close()
        self.addCleanup(here.close)
        return process, here

    def join(self, process):
        process.join()
        self.assertEqual(process.exitcode, 0)

    def test_a_consumer_reads_and_writes_the_producers_memory(self):
        for method in self.METHODS:
            with self.subTest(method):
                permit_opening()
                process, pipe = self.start(method, exchange.consume)
                memory = new_memory()
                with IPCMemoryHandle(memory) as handle:
                    for round_number in range(4):
                        pipe.send(handle)
                        self.assertEqual(pipe.recv(), BYTES[:: -1 if round_number % 2 else 1])
                    pipe.send(None)
                    self.join(process)
                self.assertEqual(memory.tobytes(), BYTES)

    def test_bytes_are_enough(self):
        for method in self.METHODS:
            with self.subTest(method):
                permit_opening()
                process, pipe = self.start(method, exchange.read_bytes)
                with IPCMemoryHandle(new_memory()) as handle:
                    pipe.send((handle.to_bytes(), handle.nbytes))
                    self.assertEqual((pipe.recv(), pipe.recv()), (BYTES, "closed"))
                    self.join(process)

    def test_the_producer_may_be_the_child(self):
        for method in self.METHODS:
            with self.subTest(method):
                process, pipe = self.start(method, exchange.produce, BYTES)
                with pipe.recv().map() as mapped:
                    self.assertEqual(mapped.tobytes(), BYTES)
                pipe.send("done")
                self.join(process)

    def test_what_is_left_at_the_end_of_the_interpreter_is_closed_and_put(self):
        permit_opening()
        process, pipe = self.start("spawn", exchange.leave_open)
        type(self).kept = IPCMemoryHandle(new_memory())
        pipe.send(self.kept)
        self.assertEqual(pipe.recv(), BYTES)
        self.join(process)

    def test_a_handle_survives_pickle_with_what_an_open_needs(self):
        with IPCMemoryHandle(new_memory()) as handle:
            copy = pickle.loads(pickle.dumps(handle))
            self.assertEqual((copy.to_bytes(), copy.nbytes), (handle.to_bytes(), handle.nbytes))
            copy.close()
            self.assertFalse(handle.is_closed)

    def test_the_end_of_a_program_without_any_clean_up_is_silent(self):
        program = (
            "import dpctl; from dpctl.memory import MemoryUSMDevice; from urscope import IPCMemoryHandle as Handle\n"
            "memory = MemoryUSMDevice(4096, queue=dpctl.SyclQueue())\n"
            "handle = Handle(memory)\n"
            "mapped = Handle.open(handle.to_bytes(), dpctl.SyclDevice(), 4096)\n"
            "view = MemoryUSMDevice(mapped); capsule = mapped.__dlpack__()\n"
            "class Node: pass\n"
            "node = Node(); node.itself, node.all = node, (handle, mapped, view, capsule)\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""), ended.stderr)
        self.assertNotIn("rror", ended.stderr)
        self.assertNotIn("ignored", ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
