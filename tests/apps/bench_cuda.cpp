// What calls of the CUDA driver take, in nanoseconds: gets of one handle, opens and closes of a handle of the other process, and fills that
// and launches of a kernel, if the driver has kernels, that are enqueued. The argument is the number of each; "unshared" in front of it leaves
// out what shares.
#include "museum_cuda.hpp"

#include <chrono>

using namespace app;

template <typename Call> static void measure(const char *what, long times, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < times; ++i) call();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  print(std::string(what) + ": " + std::to_string(static_cast<long>(took.count() / static_cast<double>(times))) + " ns");
}

const char *const image = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .u64 nothing_memory) { ret; }\n";

static void measure_launches(const char *what, long times, CUdeviceptr memory, CUstream stream) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  if (cuModuleLoadData(&module, image) == CUDA_ERROR_NOT_SUPPORTED) return;
  check(cuModuleGetFunction(&kernel, module, "nothing"), "cuModuleGetFunction");
  void *arguments[] = {&memory};
  measure(what, times, [&] { check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel"); });
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static bool shares() { return argument(0) != "unshared"; }
static long times() { return std::stol(argument(shares() ? 0 : 1)); }

static void producer(Peer &consumer) {
  use_device();
  CUdeviceptr memory = filled('a');
  if (shares()) {
    CUipcMemHandle handle;
    measure("get", times(), [&] { check(cuIpcGetMemHandle(&handle, memory), "cuIpcGetMemHandle"); });
    consumer.send(message(handle));
  }
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  measure(shares() ? "fill of shared memory" : "fill", times(), [&] { check(cuMemsetD8Async(memory, 1, 4, stream), "cuMemsetD8Async"); });
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  measure_launches(shares() ? "launch on shared memory" : "launch", times(), memory, stream);
  consumer.await("done");
  check(cuMemFree(memory), "cuMemFree");
}

static void consumer(Peer &producer) {
  if (shares()) {
    use_device();
    const CUipcMemHandle handle = handle_in(producer.receive());
    measure("open and close", times() / 100, [&] {
      CUdeviceptr memory = 0;
      check(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
      check(cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
    });
  }
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
