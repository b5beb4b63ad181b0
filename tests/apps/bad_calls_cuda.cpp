// Wrong arguments for the CUDA driver, in a process that shares memory and an event (bad_calls.hpp), or, with
// UNINITIALIZED, before cuInit.
#include "bad_calls.hpp"
#include "cuda_driver.hpp"

static void check(CUresult result) {
  if (result != CUDA_SUCCESS) {
    fprintf(stderr, "test program: the driver answered %d\n", result);
    _exit(3);
  }
}

static bad_calls::Right share() {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  if (getenv("UNINITIALIZED") == nullptr) {
    CUipcMemHandle of_memory;
    CUipcEventHandle of_event;
    check(cuInit(0));
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
    check(cuMemAlloc(&memory, 1 << 20));
    check(cuIpcGetMemHandle(&of_memory, memory));
    check(cuEventCreate(&event, 6)); // CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS
    check(cuIpcGetEventHandle(&of_event, event));
    check(cuStreamCreate(&stream, 0));
  }
  const auto word = [](const auto *handle) { return reinterpret_cast<uint64_t>(handle); };
  return {{"Context", word(context)}, {"context", word(context)}, {"DevicePointer", memory}, {"Accessed", memory}, {"CopiedFrom", memory},
          {"Length", 4096}, {"Words", 16}, {"Halves", 16}, {"Event", word(event)}, {"stream", word(stream)}, {"Ordinal", 0}, {"HandleType", 1}};
}

int main(int, char **argv) { bad_calls::make(dlopen("libcuda.so.1", RTLD_LAZY), argv, share, [] { cuCtxSynchronize(); }); }
