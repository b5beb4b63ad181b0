"""Handles and mappings within one process: types, errors, lifetimes."""

import ctypes
import gc
import sys
import threading
import unittest
import weakref

import dpctl
from dpctl.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared
from urscope import IPCMemoryHandle, MemoryIPCDevice, _dlpack, _native
from urscope.memory import _close

BYTES = bytes(range(256)) * 16
SIZE = len(BYTES)
#: Of handle data: of the adapters v1 and v2, and of urscope's own backend.
SIZES = (108, 120, 128)


def new_memory(nbytes=SIZE):
    memory = MemoryUSMDevice(nbytes, queue=dpctl.SyclQueue())
    memory.copy_from_host((BYTES * (nbytes // SIZE + 1))[:nbytes])
    return memory


def open_again(handle, nbytes=SIZE):
    return IPCMemoryHandle.open(handle.to_bytes(), dpctl.SyclDevice(), nbytes)


class HandlesAreMade(unittest.TestCase):
    def test_the_bytes_of_device_memory_are_bytes(self):
        with IPCMemoryHandle(new_memory()) as handle:
            self.assertIs(type(handle.to_bytes()), bytes)
            self.assertIn(len(handle.to_bytes()), SIZES)
            self.assertEqual(handle.nbytes, SIZE)

    def test_memory_that_is_not_device_memory_is_a_type_error(self):
        queue = dpctl.SyclQueue()
        for other in (MemoryUSMShared(SIZE, queue=queue), MemoryUSMHost(SIZE, queue=queue), bytearray(SIZE), None):
            with self.subTest(type(other).__name__), self.assertRaises(TypeError):
                IPCMemoryHandle(other)

    def test_memory_of_another_process_is_not_shared_again(self):
        with IPCMemoryHandle(new_memory()) as handle, open_again(handle) as mapped:
            with self.assertRaisesRegex(ValueError, "does not own its allocation"):
                IPCMemoryHandle(mapped)
            mapped.close()
            with self.assertRaisesRegex(ValueError, "null pointer"):
                IPCMemoryHandle(mapped)

    def test_a_closed_handle_gives_no_bytes(self):
        handle = IPCMemoryHandle(new_memory())
        self.assertFalse(handle.is_closed)
        handle.close()
        handle.close()
        self.assertTrue(handle.is_closed)
        with self.assertRaisesRegex(RuntimeError, "already been closed"):
            handle.to_bytes()

    def test_the_memory_lives_as_long_as_its_handle(self):
        memory = new_memory()
        handle = IPCMemoryHandle(memory)
        del memory
        gc.collect()
        with open_again(handle) as mapped:
            self.assertEqual(mapped.tobytes(), BYTES)
        handle.close()

    def test_the_runtime_and_its_device_share_memory(self):
        self.assertIs(IPCMemoryHandle.is_available(), True)
        self.assertIs(IPCMemoryHandle.is_available(dpctl.SyclDevice()), True)


class MappingsAreOpened(unittest.TestCase):
    def setUp(self):
        self.memory = new_memory()
        self.handle = IPCMemoryHandle(self.memory)
        self.addCleanup(self.handle.close)

    def test_a_mapping_is_usm_device_memory_of_its_own_type(self):
        with open_again(self.handle) as mapped:
            self.assertIsInstance(mapped, MemoryIPCDevice)
            self.assertIsInstance(mapped, MemoryUSMDevice)
            self.assertEqual((mapped.nbytes, mapped.get_usm_type()), (SIZE, "device"))
        self.assertIsInstance(mapped, MemoryIPCDevice)
        queue = dpctl.SyclQueue()
        for kind in (MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost):
            self.assertNotIsInstance(kind(64, queue=queue), MemoryIPCDevice)

    def test_it_is_the_same_memory(self):
        with open_again(self.handle) as mapped:
            self.assertEqual(mapped.tobytes(), BYTES)
            mapped.copy_from_host(BYTES[::-1])
            self.assertEqual(self.memory.tobytes(), BYTES[::-1])
            mapped.memset(7)
            self.assertEqual(self.memory.tobytes(), bytes([7]) * SIZE)

    def test_it_is_copied_from_and_to_device_memory(self):
        with open_again(self.handle) as mapped:
            copy = MemoryUSMDevice(SIZE, queue=dpctl.SyclQueue())
            copy.copy_from_device(mapped)
            self.assertEqual(copy.tobytes(), BYTES)
            copy.memset(3)
            mapped.copy_from_device(copy)
            self.assertEqual(self.memory.tobytes(), bytes([3]) * SIZE)

    def test_a_closed_mapping_has_no_pointer_and_no_bytes(self):
        mapped = open_again(self.handle)
        self.assertIs(mapped.is_closed, False)
        self.assertNotEqual(mapped._pointer, 0)
        IPCMemoryHandle.close_mapping(mapped)
        self.assertIs(mapped.is_closed, True)
        self.assertEqual((mapped._pointer, mapped.nbytes), (0, 0))

    def test_a_second_close_does_nothing(self):
        mapped, other = open_again(self.handle), open_again(self.handle)
        for _ in range(3):
            IPCMemoryHandle.close_mapping(mapped)
        self.assertEqual(other.tobytes(), BYTES)
        other.close()

    def test_ordinary_memory_has_no_mapping_to_close(self):
        with self.assertRaisesRegex(RuntimeError, "non-IPC"):
            IPCMemoryHandle.close_mapping(self.memory)
        with self.assertRaises(TypeError):
            IPCMemoryHandle.close_mapping(b"")

    def test_every_use_after_the_close_is_an_error(self):
        mapped = open_again(self.handle)
        mapped.close()
        uses = {
            "copy_to_host": lambda: mapped.copy_to_host(),
            "copy_from_host": lambda: mapped.copy_from_host(BYTES),
            "copy_from_device": lambda: mapped.copy_from_device(self.memory),
            "copied from": lambda: self.memory.copy_from_device(mapped),
            "memset": lambda: mapped.memset(0),
            "tobytes": lambda: mapped.tobytes(),
            "bytes": lambda: bytes(mapped),
            "get_usm_type": lambda: mapped.get_usm_type(),
            "interface": lambda: mapped.__sycl_usm_array_interface__,
            "dlpack": lambda: mapped.__dlpack__(),
            "view": lambda: MemoryUSMDevice(mapped),
            "queue": lambda: dpctl.SyclQueue().memcpy(self.memory, mapped, SIZE),
            "with": lambda: mapped.__enter__(),
        }
        for name, use in uses.items():
            with self.subTest(name), self.assertRaises((ValueError, RuntimeError)):
                use()
        self.assertEqual(self.memory.tobytes(), BYTES)

    def test_it_cannot_be_made_in_another_way(self):
        with self.assertRaisesRegex(TypeError, "IPCMemoryHandle.open"):
            MemoryIPCDevice(self.memory)


class MappingsAreShared(unittest.TestCase):
    def setUp(self):
        self.memory = new_memory()
        self.handle = IPCMemoryHandle(self.memory)
        self.addCleanup(self.handle.close)

    def test_a_view_keeps_the_mapping_open(self):
        mapped = open_again(self.handle)
        view = MemoryUSMDevice(mapped)
        pointer = mapped._pointer
        mapped.close()
        self.assertTrue(mapped.is_closed)
        self.assertEqual((view._pointer, view.tobytes()), (pointer, BYTES))
        del mapped
        gc.collect()
        self.assertEqual(view.tobytes(), BYTES)

    def test_an_array_on_the_object_keeps_the_mapping_open(self):
        class Array:
            def __init__(self, base):
                self.base = base
                self.__sycl_usm_array_interface__ = dict(base.__sycl_usm_array_interface__)

        mapped = open_again(self.handle)
        array = MemoryUSMDevice(Array(mapped))
        mapped.close()
        self.assertEqual(array.tobytes(), BYTES)

    def test_a_dlpack_capsule_is_on_the_same_memory_and_keeps_it_open(self):
        mapped = open_again(self.handle)
        pointer = mapped._pointer
        self.assertEqual(mapped.__dlpack_device__(), (14, dpctl.SyclDevice().get_device_id()))
        with self.assertRaises(BufferError):
            mapped.__dlpack__(stream=1)
        capsule = mapped.__dlpack__()
        mapped.close()
        address = _dlpack._pointer_of(id(capsule), b"dltensor")
        tensor = _dlpack._Managed.from_address(address).tensor
        self.assertEqual((tensor.data, tensor.ndim, tensor.shape[0], tensor.strides[0]), (pointer, 1, SIZE, 1))
        self.assertEqual((tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset), (1, 8, 1, 0))
        self.assertEqual((tensor.device.kind, tensor.device.number), (14, dpctl.SyclDevice().get_device_id()))
        view = _dlpack._in_use[address][-1]
        self.assertEqual(view.tobytes(), BYTES)
        del view, capsule
        self.assertNotIn(address, _dlpack._in_use)

    def test_a_consumer_of_a_capsule_releases_it(self):
        mapped = open_again(self.handle)
        capsule = mapped.__dlpack__()
        address = _dlpack._pointer_of(id(capsule), b"dltensor")
        used = b"used_dltensor"
        ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), used)
        del capsule
        self.assertIn(address, _dlpack._in_use)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_dlpack._Managed.from_address(address).deleter)(address)
        self.assertNotIn(address, _dlpack._in_use)
        mapped.close()
        self.assertEqual(mapped._pointer, 0)

    def test_mappings_in_a_cycle_are_collected(self):
        class Node:
            pass

        before = self.open_mappings()
        node = Node()
        node.mapped, node.itself = open_again(self.handle), node
        del node
        gc.collect()
        self.assertEqual(self.open_mappings(), before)

    def open_mappings(self):
        """How many mappings are open, as the finalizers know them."""
        return sum(1 for entry in weakref.finalize._registry.values() if entry.func is _close)

    def test_the_last_reference_closes(self):
        before = self.open_mappings()
        mapped = open_again(self.handle)
        views = [MemoryUSMDevice(mapped) for _ in range(3)]
        del mapped
        while views:
            self.assertEqual(self.open_mappings(), before + 1)
            views.pop()
        self.assertEqual(self.open_mappings(), before)

    def test_threads_open_and_close_side_by_side(self):
        failures = []

        def work():
            try:
                for _ in range(200):
                    with open_again(self.handle) as mapped:
                        assert bytes(mapped.copy_to_host())[:8] == BYTES[:8]
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_close_waits_for_no_copy_and_breaks_none(self):
        """One thread copies while another closes: the copy either works or says that the mapping is closed."""
        for _ in range(50):
            mapped = open_again(self.handle)
            began, results = threading.Event(), []

            def copy():
                try:
                    while True:
                        results.append(mapped.tobytes())
                        began.set()
                except ValueError as error:
                    results.append(str(error))

            thread = threading.Thread(target=copy)
            thread.start()
            began.wait()
            mapped.close()
            thread.join()
            self.assertIn("has been closed", results[-1])
            self.assertEqual(set(results[:-1]), {BYTES})


class TheCInterface(unittest.TestCase):
    """As a program in C calls it: a failed call returns, and says why."""

    def setUp(self):
        self.library = _native._library
        self.memory = new_memory()
        self.pointer = self.memory._pointer
        self.context = self.memory.sycl_context.addressof_ref()
        self.device = self.memory.sycl_device.addressof_ref()

    def error(self):
        text = self.library.urscope_ipc_last_error()
        return None if text is None else text.decode()

    def get(self, pointer, context):
        data, size = ctypes.c_void_p(1), ctypes.c_size_t(2)
        failed = self.library.DPCTLIPCMem_GetHandle(pointer, context, ctypes.byref(data), ctypes.byref(size))
        return failed, data.value, size.value

    def test_null_is_refused_by_name(self):
        library, context, device = self.library, self.context, self.device
        self.assertEqual(self.get(None, context), (1, 1, 2))
        self.assertEqual(self.error(), "Ptr is null")
        self.assertEqual(self.get(self.pointer, None), (1, 1, 2))
        self.assertEqual(self.error(), "CRef is null")
        self.assertEqual(library.DPCTLIPCMem_GetHandle(self.pointer, context, None, None), 1)
        self.assertEqual(self.error(), "DataOut is null")
        for arguments, name in (
            ((None, 8, context, device), "HandleData"),
            ((b"12345678", 8, None, device), "CRef"),
            ((b"12345678", 8, context, None), "DRef"),
        ):
            self.assertIsNone(library.DPCTLIPCMem_OpenHandle(*arguments))
            self.assertEqual(self.error(), f"{name} is null")
        library.DPCTLIPCMem_CloseHandle(None, context)
        self.assertEqual(self.error(), "MappedPtr is null")
        self.assertEqual(library.urscope_ipc_device_shares_memory(None), -1)

    def test_handle_data_are_freed_once(self):
        failed, data, size = self.get(self.pointer, self.context)
        self.assertEqual((failed, self.error()), (0, None))
        self.assertIn(size, SIZES)
        self.library.DPCTLIPCMem_FreeHandleData(data)
        self.assertIsNone(self.error())
        self.library.DPCTLIPCMem_FreeHandleData(data)
        self.assertIn("freed before, or never got", self.error())
        self.library.DPCTLIPCMem_FreeHandleData(None)
        self.assertIsNone(self.error())

    def test_what_the_runtime_throws_is_a_message(self):
        place = ctypes.create_string_buffer(64)
        failed, _, _ = self.get(ctypes.addressof(place), self.context)
        self.assertEqual(failed, 1)
        self.assertTrue(self.error())

    def test_each_thread_has_its_own_message(self):
        self.get(None, self.context)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(self.error()))
        thread.start()
        thread.join()
        self.assertEqual((seen, self.error()), ([None], "Ptr is null"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
