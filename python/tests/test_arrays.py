"""Arrays of dpctl on opened memory, without a copy. dpctl has arrays up to 0.21; later they are dpnp's."""

import sys
import unittest
import warnings

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dpctl.tensor as tensor

BYTES = bytes(range(256)) * 16


class Arrays(unittest.TestCase):
    def setUp(self):
        self.memory = MemoryUSMDevice(len(BYTES), queue=dpctl.SyclQueue())
        self.memory.copy_from_host(BYTES)
        self.handle = IPCMemoryHandle(self.memory)
        self.addCleanup(self.handle.close)
        self.mapped = IPCMemoryHandle.open(self.handle.to_bytes(), dpctl.SyclDevice(), len(BYTES))
        self.pointer = self.mapped._pointer

    def test_from_dlpack(self):
        array = tensor.from_dlpack(self.mapped)
        self.assertEqual((array.dtype, array.shape, array._pointer), (tensor.uint8, (len(BYTES),), self.pointer))
        # The array shares the mapping, and outlives the object.
        self.mapped.close()
        self.assertEqual(bytes(array.usm_data.copy_to_host()), BYTES)
        array.usm_data.memset(3)
        self.assertEqual(self.memory.tobytes(), bytes([3]) * len(BYTES))

    def test_asarray(self):
        array = tensor.asarray(self.mapped)
        self.assertEqual((array.dtype, array.shape, array._pointer), (tensor.uint8, (len(BYTES),), self.pointer))

    def test_a_buffer_of_another_type(self):
        array = tensor.usm_ndarray((len(BYTES) // 8, 2), dtype="i4", buffer=self.mapped)
        self.assertEqual((array._pointer, array.nbytes), (self.pointer, len(BYTES)))
        # The array refers to the object, so its mapping stays.
        self.mapped.close()
        with self.assertRaises(ValueError):
            self.mapped.tobytes()
        self.assertEqual(array._pointer, self.pointer)
        self.assertEqual(MemoryUSMDevice(array).tobytes(), BYTES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
