"""Libraries that share memory and events between processes on NVIDIA GPUs: PyTorch, CuPy and NCCL.

The argument names a case; "list" prints all, each with what is found in it. Those of the second half make one mistake each. What a
case needs and does not find ends it with exit code 77.
"""

import ctypes
import importlib
import multiprocessing
import os
import socket
import sys

MEBIBYTE = 1 << 20
#: The elements of most tensors.
SIZE = 1 << 16


def needed(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"test program: it needs {name}", file=sys.stderr)
        sys.exit(77)


def say(*words):
    """Prints a line in one write: two processes print."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def ended(processes):
    """Waits for processes; whether all ended well."""
    for process in processes:
        process.join()
    if any(process.exitcode == 77 for process in processes):
        sys.exit(77)
    return all(process.exitcode == 0 for process in processes)


def played(producer, consumer):
    """Runs two processes that are connected by a pipe; whether both ended well."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    processes = [context.Process(target=producer, args=(ours,)), context.Process(target=consumer, args=(theirs,))]
    for process in processes:
        process.start()
    # Only the processes hold the ends, so that one sees when the other ends.
    ours.close()
    theirs.close()
    return ended(processes)


# PyTorch: tensors through a queue. Each has a handle, and lies in a block of the allocator.


def send_tensors(queue, pipe, count):
    torch = needed("torch")
    tensors = [torch.full((SIZE,), float(number), device="cuda") for number in range(count)]
    for tensor in tensors:
        queue.put(tensor)
    pipe.recv()


def sum_of_tensors(queue, pipe, count):
    torch = needed("torch")
    total = 0.0
    for number in range(count):
        tensor = queue.get()
        total += tensor[number].item()
        del tensor
    torch.cuda.ipc_collect()
    say("sum", total)
    pipe.send("done")


#: The tensors of a consumer that never lets go of them.
CACHE = []


def keep_tensors(queue, pipe, count):
    needed("torch")
    for _ in range(count):
        CACHE.append(queue.get())  # mistake
    say("sum", sum(tensor[0].item() for tensor in CACHE))
    pipe.send("done")
    sys.stdout.flush()
    os._exit(0)


def through_queue(consumer, count):
    torch = needed("torch.multiprocessing")
    context = torch.get_context("spawn")
    queue = context.Queue()
    ours, theirs = context.Pipe()
    processes = [
        context.Process(target=send_tensors, args=(queue, ours, count)),
        context.Process(target=consumer, args=(queue, theirs, count)),
    ]
    for process in processes:
        process.start()
    return ended(processes)


def torch_queue():
    return through_queue(sum_of_tensors, 20)


def torch_queue_expandable():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    return torch_queue()


def torch_kept():
    return through_queue(keep_tensors, 20)


# PyTorch: an event.


def record_event(pipe):
    torch = needed("torch")
    event = torch.cuda.Event(interprocess=True)
    event.record()
    pipe.send(bytes(event.ipc_handle()))
    pipe.recv()


def wait_for_event(pipe):
    torch = needed("torch")
    torch.cuda.init()
    event = torch.cuda.Event.from_ipc_handle(torch.device("cuda", 0), pipe.recv())
    event.synchronize()
    say("signalled", event.query())
    del event
    pipe.send("done")


def torch_event():
    return played(record_event, wait_for_event)


# CuPy.


def share_array(pipe):
    cupy = needed("cupy")
    memory = cupy.cuda.alloc(MEBIBYTE)
    array = cupy.ndarray((SIZE,), dtype=cupy.float32, memptr=memory)
    array[:] = 3
    cupy.cuda.Stream.null.synchronize()
    pipe.send(cupy.cuda.runtime.ipcGetMemHandle(array.data.ptr))
    return cupy, array


def share_and_keep(pipe):
    _, array = share_array(pipe)
    pipe.recv()
    say("owner", float(array[0]))


def share_and_free(pipe):
    cupy, array = share_array(pipe)
    pipe.recv()
    del array
    cupy.get_default_memory_pool().free_all_blocks()  # mistake
    pipe.send("freed")
    pipe.recv()


def opened(pipe):
    cupy = needed("cupy")
    cupy.cuda.runtime.setDevice(0)
    cupy.cuda.runtime.free(0)
    return cupy, cupy.cuda.runtime.ipcOpenMemHandle(pipe.recv())


def element(cupy, address):
    memory = cupy.cuda.UnownedMemory(address, 4 * SIZE, None)
    return float(cupy.ndarray((SIZE,), dtype=cupy.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))[1])


def read_array(pipe):
    cupy, address = opened(pipe)
    say("user", element(cupy, address))
    cupy.cuda.runtime.ipcCloseMemHandle(address)
    pipe.send("done")


def read_freed_array(pipe):
    cupy, address = opened(pipe)
    say("user", element(cupy, address))
    pipe.send("read")
    pipe.recv()
    cupy.cuda.runtime.ipcCloseMemHandle(address)
    pipe.send("done")


def close_twice(pipe):
    cupy, address = opened(pipe)
    cupy.cuda.runtime.ipcCloseMemHandle(address)
    try:
        cupy.cuda.runtime.ipcCloseMemHandle(address)  # mistake
    except cupy.cuda.runtime.CUDARuntimeError as error:
        say(error)
    pipe.send("done")


def cupy_array():
    return played(share_and_keep, read_array)


def cupy_freed():
    return played(share_and_free, read_freed_array)


def cupy_closed_twice():
    return played(share_and_keep, close_twice)


# Raw buffers that all ranks open, as the all-reduce kernels of inference engines do, through libcudart.


class Handle(ctypes.Structure):
    """A cudaIpcMemHandle_t."""

    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def cudart():
    """libcudart, which PyTorch has loaded."""
    needed("torch").cuda.init()
    for line in open("/proc/self/maps"):
        path = line.split(maxsplit=5)[-1].strip()
        if "libcudart" in path:
            return ctypes.CDLL(path)
    print("test program: it needs a libcudart that PyTorch loads", file=sys.stderr)
    sys.exit(77)


def buffer_of(runtime, value):
    memory = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(2 * MEBIBYTE)) == 0
    assert runtime.cudaMemset(memory, value, ctypes.c_size_t(2 * MEBIBYTE)) == 0
    return memory


def handle_of(runtime, memory):
    handle = Handle()
    assert runtime.cudaIpcGetMemHandle(ctypes.byref(handle), memory) == 0
    return bytes(handle.bytes)


def mapping_of(runtime, data):
    memory = ctypes.c_void_p()
    handle = Handle((ctypes.c_ubyte * 64)(*data))
    assert runtime.cudaIpcOpenMemHandle(ctypes.byref(memory), handle, 1) == 0
    return memory


def first_byte(runtime, memory):
    byte = ctypes.c_ubyte()
    assert runtime.cudaMemcpy(ctypes.byref(byte), memory, ctypes.c_size_t(1), 2) == 0
    return byte.value


def exchange(pipe, value, mistake):
    """Each side gives the other one its buffer. With a mistake the second buffer is sent with the first one's handle."""
    runtime = cudart()
    memory = buffer_of(runtime, value)
    handle = handle_of(runtime, memory)
    if mistake:
        assert runtime.cudaFree(memory) == 0
        memory = buffer_of(runtime, value + 1)
        handle_of(runtime, memory)
    pipe.send(handle)
    other = mapping_of(runtime, pipe.recv())  # mistake
    say("rank", value, "reads", first_byte(runtime, other))
    assert runtime.cudaIpcCloseMemHandle(other) == 0
    pipe.send("closed")
    pipe.recv()
    assert runtime.cudaFree(memory) == 0


def first_rank(pipe):
    exchange(pipe, 1, False)


def second_rank(pipe):
    exchange(pipe, 5, False)


def second_rank_with_old_handle(pipe):
    exchange(pipe, 5, True)


def raw_buffers():
    return played(first_rank, second_rank)


def raw_buffers_stale():
    return played(first_rank, second_rank_with_old_handle)


# NCCL, by PyTorch, on two GPUs.


def reduce_all(rank, port, is_symmetric):
    torch = needed("torch")
    distributed = needed("torch.distributed")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    if is_symmetric:
        symmetric = needed("torch.distributed._symmetric_memory")
        tensor = symmetric.empty(1 << 20, device=f"cuda:{rank}").fill_(rank + 1)
        peers = symmetric.rendezvous(tensor, distributed.group.WORLD)
        peers.barrier()
        value = peers.get_buffer(1 - rank, (4,), torch.float32)[0].item()
        peers.barrier()
    else:
        tensor = torch.full((1 << 24,), float(rank + 1), device="cuda")
        distributed.all_reduce(tensor)
        value = tensor[0].item()
    torch.cuda.synchronize()
    say("rank", rank, "has", value)
    distributed.destroy_process_group()


def two_gpus(is_symmetric=False):
    torch = needed("torch")
    if torch.cuda.device_count() < 2:
        print("test program: it needs two GPUs", file=sys.stderr)
        sys.exit(77)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=reduce_all, args=(rank, port, is_symmetric)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    return ended(ranks)


def nccl():
    return two_gpus()


def nccl_legacy():
    os.environ["NCCL_CUMEM_ENABLE"] = "0"
    return two_gpus()


def symmetric_memory():
    return two_gpus(is_symmetric=True)


#: Each case, and what is found in it.
CASES = {
    torch_queue: "",
    torch_queue_expandable: "",
    torch_event: "",
    cupy_array: "",
    raw_buffers: "",
    nccl: "",
    symmetric_memory: "",
    torch_kept: "note leaked-mapping",
    cupy_freed: "error freed-while-open",
    cupy_closed_twice: "error double-close",
    raw_buffers_stale: "error stale-handle, note get-without-open",
    # The mistake is NCCL's own: at its end, a rank frees buffers that its peer has open.
    nccl_legacy: "error freed-while-open, note get-without-open",
}

if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        for case, found in CASES.items():
            print(f"{case.__name__}: {found}".strip())
        sys.exit()
    by_name = {case.__name__: case for case in CASES}
    if len(sys.argv) != 2 or sys.argv[1] not in by_name:
        sys.exit(f"usage: {sys.argv[0]} list|{'|'.join(by_name)}")
    sys.exit(0 if by_name[sys.argv[1]]() else 1)
