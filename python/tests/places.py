"""Leaves handles behind from many lines, and in every way in which Python calls a function.

    python places.py

Each line that makes handles says in a comment how many. The process ends without its finalizers.
"""

import functools
import itertools
import os
import threading

import dpctl
from dpctl.memory import MemoryUSMDevice
from urscope import IPCMemoryHandle

kept = []


def new_handle():
    kept.append(IPCMemoryHandle(MemoryUSMDevice(65536, queue=dpctl.SyclQueue())))  # not the place that is looked for


def alternate(times):
    for _ in range(times):
        new_handle()  # alternate: 7
        new_handle()  # alternate: 7


def generate(times):
    for _ in range(times):
        new_handle()  # generate: 3
        yield
    new_handle()  # generate: 2


class Callable:
    def __call__(self, *_):
        new_handle()  # __call__: 4
        return 0


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    new_handle()  # recurse: 3


def through_native_code():
    sorted([3, 1], key=Callable())
    list(map(Callable(), [1]))
    functools.partial(Callable(), 1)()


def generated():
    # Each is gone when the next one is made, perhaps at the same address.
    for number in range(4):
        exec(compile("\n" * number + "new_handle()", f"/generated/{number}.py", "exec"), {"new_handle": new_handle})


def take(handles):
    kept.append(next(handles))


def behind_much_native_code():
    handles = map(IPCMemoryHandle, [MemoryUSMDevice(65536, queue=dpctl.SyclQueue())])
    for _ in range(40):
        handles = itertools.chain(handles)
    take(handles)  # behind_much_native_code: 2


def in_a_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


if __name__ == "__main__":
    alternate(4)
    list(generate(2))
    through_native_code()
    recurse(30)
    generated()
    behind_much_native_code()
    in_a_thread(alternate, 3)
    in_a_thread(behind_much_native_code)
    in_a_thread(lambda: list(generate(1)) + [recurse(30) for _ in range(2)])
    os._exit(0)
