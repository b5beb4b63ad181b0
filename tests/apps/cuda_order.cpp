// What comes before what in streams of the CUDA driver, and what ends with a context. The argument names a case; "list" prints the names.
// A function of the program holds a stream until the program lets it go on.
#include "cuda_driver.hpp"
#include "peer.hpp"

#include <atomic>
#include <dlfcn.h>
#include <thread>

using namespace app;

namespace {

constexpr size_t COUNT = 1 << 16;

void check(CUresult result, const char *what) { require(result == CUDA_SUCCESS, what); }
#define CHECK(call) check(call, #call)

// A function that a stream calls, and that returns when it may.
struct Gate {
  std::atomic<bool> is_open{false};
  static void pass(void *gate) {
    while (!static_cast<Gate *>(gate)->is_open) std::this_thread::yield();
  }
};

CUcontext use_device() {
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

// Memory, the streams of three kinds, and a gate. What is set in one of them is copied in another one.
struct Streams {
  CUcontext context = use_device();
  CUstream blocking = nullptr, free = nullptr;
  CUdeviceptr memory = 0;
  // A copy to other memory of the host is over when the call returns.
  unsigned *copied = nullptr;
  Gate gate;

  Streams() {
    CHECK(cuStreamCreate(&blocking, 0));
    CHECK(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&memory, COUNT * 4));
    CHECK(cuMemAllocHost(reinterpret_cast<void **>(&copied), COUNT * 4));
    CHECK(cuMemsetD32(memory, 1, COUNT));
  }
  void set_behind_gate(CUstream stream) {
    CHECK(cuLaunchHostFunc(stream, Gate::pass, &gate));
    CHECK(cuMemsetD32Async(memory, 2, COUNT, stream));
  }
  void copy(CUstream stream) { CHECK(cuMemcpyDtoHAsync(copied, memory, COUNT * 4, stream)); }
  void require_order(CUstream stream) {
    require(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "the stream does not wait");
    gate.is_open = true;
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamQuery(stream));
    for (size_t at = 0; at < COUNT; ++at) require(copied[at] == 2, "what was set before is not there");
  }
};

ALONE(default_stream_waits_for_others) {
  Streams all;
  all.set_behind_gate(all.blocking);
  all.copy(nullptr);
  all.require_order(nullptr);
}

ALONE(others_wait_for_default_stream) {
  Streams all;
  all.set_behind_gate(nullptr);
  all.copy(all.blocking);
  all.require_order(all.blocking);
}

ALONE(free_stream_waits_for_none) {
  Streams all;
  all.set_behind_gate(nullptr);
  CHECK(cuMemcpyDtoHAsync(all.copied, all.memory, COUNT * 4, all.free));
  CHECK(cuStreamSynchronize(all.free));
  require(all.copied[0] == 1, "the stream has waited");
  all.copy(nullptr);
  all.require_order(nullptr);
}

ALONE(event_is_awaited_after_its_end) {
  Streams all;
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventQuery(event));
  all.set_behind_gate(all.blocking);
  CHECK(cuEventRecord(event, all.blocking));
  require(cuEventQuery(event) == CUDA_ERROR_NOT_READY, "the event has completed");
  CHECK(cuStreamWaitEvent(all.free, event, 0));
  CHECK(cuEventDestroy(event));
  all.copy(all.free);
  all.require_order(all.free);
}

ALONE(freed_memory_is_used_to_the_end) {
  Streams all;
  CUdeviceptr other = 0;
  CHECK(cuMemAllocAsync(&other, COUNT * 4, all.blocking));
  all.set_behind_gate(all.blocking);
  CHECK(cuMemcpyDtoDAsync(other, all.memory, COUNT * 4, all.blocking));
  CHECK(cuMemcpyDtoHAsync(all.copied, other, COUNT * 4, all.blocking));
  CHECK(cuMemFreeAsync(other, all.blocking));
  all.require_order(all.blocking);
}

ALONE(each_thread_has_a_default_stream) {
  Streams all;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto launch = reinterpret_cast<decltype(&cuLaunchHostFunc)>(dlsym(driver, "cuLaunchHostFunc_ptsz"));
  const auto query = reinterpret_cast<decltype(&cuStreamQuery)>(dlsym(driver, "cuStreamQuery_ptsz"));
  const auto synchronise = reinterpret_cast<decltype(&cuStreamSynchronize)>(dlsym(driver, "cuStreamSynchronize_ptsz"));
  CHECK(launch(nullptr, Gate::pass, &all.gate));
  std::thread([&] {
    CHECK(cuCtxSetCurrent(all.context));
    CHECK(query(nullptr));
  }).join();
  require(query(nullptr) == CUDA_ERROR_NOT_READY, "this thread's stream has completed");
  require(cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY, "the legacy stream does not wait for it");
  all.gate.is_open = true;
  CHECK(synchronise(nullptr));
}

ALONE(contexts_are_of_threads) {
  const CUcontext primary = use_device();
  CUcontext made = nullptr, found = primary;
  CHECK(cuCtxCreate(&made, nullptr, 0, 0));
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CHECK(cuMemAlloc(&memory, 4096));
  CHECK(cuStreamCreate(&stream, 0));
  std::thread([&] { CHECK(cuCtxGetCurrent(&found)); }).join();
  require(found == nullptr, "another thread has a context");
  CHECK(cuCtxDestroy(made));
  CHECK(cuCtxSetCurrent(primary));
  require(cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE, "the memory outlives its context");
}

// As adapters do: they give their contexts back when the process ends, and what is local to the thread has ended by then.
ALONE(exit_handlers_may_use_contexts) {
  static const CUcontext primary = use_device();
  std::atexit([] {
    CUcontext found = nullptr;
    if (cuCtxGetCurrent(&found) || found != primary || cuDevicePrimaryCtxRelease(0)) _exit(1);
  });
}

ALONE(managed_memory_is_of_the_host_too) {
  use_device();
  CUdeviceptr memory = 0;
  CHECK(cuMemAllocManaged(&memory, COUNT * 4, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemsetD32(memory, 7, COUNT));
  CHECK(cuCtxSynchronize());
  const volatile unsigned *words = reinterpret_cast<unsigned *>(memory);
  require(words[0] == 7 && words[COUNT - 1] == 7, "the host sees other data");
  unsigned kind = 0;
  size_t size = 0;
  CHECK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 8));
  CHECK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 8));
  require(kind == 2 && size == COUNT * 4, "the pointer is of something else");
  CHECK(cuMemFree(memory));
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
