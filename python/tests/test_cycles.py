"""Many handles and mappings lose no descriptor and no memory. It is measured without urscope, which keeps tables of its own."""

import gc
import os
import sys
import unittest
from pathlib import Path

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle

CYCLES = 30_000


def held():
    """The open descriptors, and the bytes of memory that belongs to no file."""
    gc.collect()
    status = Path("/proc/self/status").read_text().splitlines()
    anonymous = next(line for line in status if line.startswith("RssAnon:"))
    return len(os.listdir("/proc/self/fd")), int(anonymous.split()[1]) << 10


class Cycles(unittest.TestCase):
    def test_nothing_is_lost(self):
        memory, device = MemoryUSMDevice(4096, queue=dpctl.SyclQueue()), dpctl.SyclDevice()

        def cycles(count):
            for _ in range(count):
                handle = IPCMemoryHandle(memory)
                IPCMemoryHandle.open(handle.to_bytes(), device, 4096)
                del handle

        cycles(CYCLES // 10)
        descriptors, resident = held()
        cycles(CYCLES)
        now_descriptors, now_resident = held()
        self.assertEqual(now_descriptors, descriptors)
        # A handle that is not put costs 120 bytes.
        self.assertLess((now_resident - resident) / CYCLES, 10, "bytes a cycle")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
