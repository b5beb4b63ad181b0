// A clean program in a library that is opened with RTLD_LOCAL, as Python opens its modules: only the library finds the
// symbols of the SYCL runtime and its loader. It releases everything in its finalizer: after the end of the program, and
// after everything that is finalized earlier.
#include "ipc_app.hpp"

using namespace app;

static Gpu *gpu;
static std::byte *memory, *mapping;
static Handle *handle;

extern "C" int share() {
  return guarded([] {
    gpu = new Gpu;
    auto [allocated, got] = export_pattern(*gpu, 1 << 20, 23);
    memory = allocated;
    handle = new Handle(got);
    mapping = open(handle->data(), *gpu);
  });
}

__attribute__((destructor)) static void tidy_up() {
  if (gpu == nullptr) return;
  close(mapping, *gpu);
  put(*handle, *gpu);
  gpu->free(memory);
  print("tidied up");
}
