// The rounds of order_rounds.hpp with the CUDA driver.
#include "museum_cuda.hpp"
#include "order_rounds.hpp"

#include <map>

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) : Device() {
    check(cuMemAlloc(&memory, size), "cuMemAlloc");
    CUipcMemHandle got;
    check(cuIpcGetMemHandle(&got, memory), "cuIpcGetMemHandle");
    bytes = message(got);
  }
  explicit Device(const Bytes &handle) : Device() {
    check(cuIpcOpenMemHandle(&memory, handle_in(handle), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  }

  Bytes handle() const { return bytes; }
  void close() { check(cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle"); }
  void free() { check(cuMemFree(memory), "cuMemFree"); }

  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    CUstream on = streams.at(queue);
    if (!writes) check(cuMemcpyDtoDAsync(own, memory + at, size, on), "cuMemcpyDtoDAsync");
    else if (at / stride % 2) check(cuMemsetD8Async(memory + at, 7, size, on), "cuMemsetD8Async");
    else check(cuMemcpyDtoDAsync(memory + at, own, size, on), "cuMemcpyDtoDAsync");
    check(cuEventRecord(latest, on), "cuEventRecord");
  }

  void wait(const std::string &queue, const std::string &how) {
    CUstream on = streams.at(queue);
    if (how == "queue") check(cuStreamSynchronize(on), "cuStreamSynchronize");
    else if (how == "event") check(cuEventSynchronize(latest), "cuEventSynchronize");
    else if (how == "barrier") check(cuCtxSynchronize(), "cuCtxSynchronize");
    else if (how == "elsewhere") {
      check(cuStreamWaitEvent(elsewhere, latest, 0), "cuStreamWaitEvent");
      check(cuStreamSynchronize(elsewhere), "cuStreamSynchronize");
    } else if (how == "behind") {
      check(cuMemsetD8Async(own, 1, 64, on), "cuMemsetD8Async");
      check(cuStreamSynchronize(on), "cuStreamSynchronize");
    } else if (how == "polled") {
      while (cuEventQuery(latest) == CUDA_ERROR_NOT_READY) {}
    } else require(false, "there is no such wait: " + how);
  }

private:
  Device() {
    use_device();
    CUstream blocking = nullptr, free = nullptr;
    check(cuStreamCreate(&blocking, 0), "cuStreamCreate");
    check(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuEventCreate(&latest, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(cuMemAlloc(&own, 2 * stride), "cuMemAlloc");
    streams = {{"first", blocking}, {"second", free}, {"third", nullptr}};
  }

  CUdeviceptr memory = 0, own = 0;
  CUstream elsewhere = nullptr;
  CUevent latest = nullptr;
  std::map<std::string, CUstream> streams;
  Bytes bytes;
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
