"""Makes a mistake at two places. Everything goes through a class of its own, which calls a library of C++ over the runtime, or the Level Zero
loader.

    lending.py library PATH     the library that lending.cpp makes
    lending.py loader PATH      libze_loader.so.1
"""

import ctypes
import sys

SIZE = 8 << 20


class Library:
    """Calls the library of C++."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.script_allocates.restype = ctypes.c_void_p

    def take(self, size):
        return ctypes.c_void_p(self.library.script_allocates(ctypes.c_size_t(size)))

    def lend(self, memory):
        self.library.script_lends(memory)

    def err(self, memory):
        """Frees what is lent."""
        self.library.script_frees(memory)


class Description(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32), ("ordinal", ctypes.c_uint32)]


class Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * 64)]


class Loader:
    """Calls any function of the loader by its name."""

    def __init__(self, path):
        self.loader = ctypes.CDLL(path)
        self.call("zeInit", 0)
        driver, self.device, self.context = (ctypes.c_void_p() for _ in range(3))
        self.call("zeDriverGet", ctypes.byref(ctypes.c_uint32(1)), ctypes.byref(driver))
        self.call("zeDeviceGet", driver, ctypes.byref(ctypes.c_uint32(1)), ctypes.byref(self.device))
        self.call("zeContextCreate", driver, ctypes.byref(Description(0xD)), ctypes.byref(self.context))

    def call(self, name, *arguments):
        result = getattr(self.loader, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} returned {result:#x}")

    def take(self, size):
        memory = ctypes.c_void_p()
        description, size, alignment = Description(0x15), ctypes.c_size_t(size), ctypes.c_size_t(64)
        where = (self.context, ctypes.byref(description))
        self.call("zeMemAllocDevice", *where, size, alignment, self.device, ctypes.byref(memory))
        return memory

    def lend(self, memory):
        self.handle = Handle()
        self.call("zeMemGetIpcHandle", self.context, memory, ctypes.byref(self.handle))

    def err(self, _):
        """Opens what is lent, and never closes it."""
        mapping = ctypes.c_void_p()
        self.call("zeMemOpenIpcHandle", self.context, self.device, self.handle, 0, ctypes.byref(mapping))


def lent(shop):
    memory = shop.take(SIZE)
    shop.lend(memory)
    return memory


def open_the_shop(shop):
    memory = lent(shop)
    shop.err(memory)  # In the morning.


def close_the_shop(shop):
    memory = lent(shop)
    shop.err(memory)  # In the evening.


if __name__ == "__main__":
    shop = {"library": Library, "loader": Loader}[sys.argv[1]](sys.argv[2])
    open_the_shop(shop)
    close_the_shop(shop)
