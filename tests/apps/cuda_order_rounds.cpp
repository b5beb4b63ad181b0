// The rounds of order_rounds.hpp with the CUDA driver. Its stand-in has no commands that write or await a number in memory
// (cuStreamWriteValue32), so flags are copied here, too.
#include "museum_cuda.hpp"
#include "order_rounds.hpp"

#include <map>

using namespace app;

namespace {

class Device {
public:
  explicit Device(size_t size) : Device() {
    check(cuMemAlloc(&memory, size), "cuMemAlloc");
    check(cuMemsetD8(memory, 0, size), "cuMemsetD8");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    CUipcMemHandle got;
    check(cuIpcGetMemHandle(&got, memory), "cuIpcGetMemHandle");
    bytes = message(got);
  }
  explicit Device(const Bytes &handle) : Device() {
    check(cuIpcOpenMemHandle(&memory, handle_in(handle), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  }

  Bytes handle() const { return bytes; }
  std::vector<Bytes> make_events() { return {make_event(mine), make_event(theirs)}; }
  void open_events(const Bytes &of_theirs, const Bytes &of_mine) { open_event(theirs, of_theirs), open_event(mine, of_mine); }
  void close() {
    destroy_events();
    check(cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
  }
  void free() {
    destroy_events();
    check(cuMemFree(memory), "cuMemFree");
  }

  void begin(const std::string &) {}
  void end(const std::string &) {}
  void enqueue(const std::string &queue, bool writes, size_t at, size_t size) {
    CUstream on = streams.at(queue);
    if (!writes) check(cuMemcpyDtoDAsync(own, memory + at, size, on), "cuMemcpyDtoDAsync");
    else if (at / stride % 2) check(cuMemsetD8Async(memory + at, 7, size, on), "cuMemsetD8Async");
    else check(cuMemcpyDtoDAsync(memory + at, own, size, on), "cuMemcpyDtoDAsync");
    check(cuEventRecord(latest, on), "cuEventRecord");
  }

  void signal(const std::string &queue) { check(cuEventRecord(mine, streams.at(queue)), "cuEventRecord"); }
  void await_event(const std::string &queue) { check(cuStreamWaitEvent(streams.at(queue), theirs, 0), "cuStreamWaitEvent"); }

  void write_flag(const std::string &queue, size_t at) { write_flag_on(streams.at(queue), at); }
  void write_flag_elsewhere(size_t at) {
    write_flag_on(elsewhere, at);
    check(cuStreamSynchronize(elsewhere), "cuStreamSynchronize");
  }
  void await_flag(size_t at) {
    for (uint32_t word = 0; word == 0;) {
      check(cuMemcpyDtoHAsync(&word, memory + at, sizeof word, elsewhere), "cuMemcpyDtoHAsync");
      check(cuStreamSynchronize(elsewhere), "cuStreamSynchronize");
    }
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
  void wait_for_all() { check(cuCtxSynchronize(), "cuCtxSynchronize"); }

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

  static Bytes make_event(CUevent &event) {
    check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), "cuEventCreate");
    CUipcEventHandle shared;
    check(cuIpcGetEventHandle(&shared, event), "cuIpcGetEventHandle");
    const auto *begin = reinterpret_cast<const std::byte *>(&shared);
    return Bytes(begin, begin + sizeof shared);
  }
  static void open_event(CUevent &event, const Bytes &handle) {
    CUipcEventHandle shared;
    require(handle.size() == sizeof shared, "the message is no handle");
    std::memcpy(&shared, handle.data(), sizeof shared);
    check(cuIpcOpenEventHandle(&event, shared), "cuIpcOpenEventHandle");
  }
  void destroy_events() {
    for (CUevent event : {mine, theirs})
      if (event) check(cuEventDestroy(event), "cuEventDestroy");
  }
  void write_flag_on(CUstream stream, size_t at) { check(cuMemsetD8Async(memory + at, 1, 4, stream), "cuMemsetD8Async"); }

  CUdeviceptr memory = 0, own = 0;
  CUstream elsewhere = nullptr;
  // The event that this process signals, and the one that the other process does.
  CUevent latest = nullptr, mine = nullptr, theirs = nullptr;
  std::map<std::string, CUstream> streams;
  Bytes bytes;
};

} // namespace

int main(int argc, char **argv) { return run_rounds<Device>(argc, argv); }
