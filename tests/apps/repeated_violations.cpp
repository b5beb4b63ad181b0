// Puts the same handle data many times, opens other handle data as often without closing it, and measures by how much the
// memory of the process grows. Less than a byte for each counts as no memory: glibc must keep no freed memory in caches of the
// threads (glibc.malloc.tcache_count=0), which mallinfo2(3) counts as used.
//
// Runs only where violations are refused: the adapters would free the handle data each time. The argument is the count.
#include "ur_app.hpp"

#include <malloc.h>

using namespace app;

static void repeat(const char *what, int times, const std::function<void()> &violation) {
  for (int i = 0; i < times / 10; ++i) violation();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < times; ++i) violation();
  const size_t after = mallinfo2().uordblks;
  print(std::string(what) + ": " + (after < before + times ? "no memory more" : std::to_string(after - before) + " bytes more"));
}

int main(int argc, char **argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 1000;
  return run_alone([times] {
    Ur ur;
    void *memory = nullptr, *data = nullptr, *mapping = nullptr;
    size_t size = 0;
    CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 8 << 20, &memory));
    CHECK(urIPCGetMemHandleExp(ur.context, memory, &data, &size));
    const auto open = [&] { CHECK(urIPCOpenMemHandleExp(ur.context, ur.device, data, size, &mapping)); };
    repeat("opens", times, open);
    CHECK(urIPCPutMemHandleExp(ur.context, data));
    repeat("second puts", times, [&] {
      require(urIPCPutMemHandleExp(ur.context, data) == UR_RESULT_ERROR_INVALID_ARGUMENT, "a second put was accepted");
    });
    repeat("closes of nothing", times, [&] {
      require(urIPCCloseMemHandleExp(ur.context, &size) == UR_RESULT_ERROR_INVALID_ARGUMENT,
              "an unknown pointer was closed");
    });
    repeat("null handles", times, [&] {
      require(urIPCPutMemHandleExp(ur.context, nullptr) == UR_RESULT_ERROR_INVALID_NULL_POINTER, "null was put");
    });
  });
}
