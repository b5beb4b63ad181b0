// A clean program that is a library, and tidies up when it is finalized: behind the end of the program, and of all that is
// finalized before it.
#include "ipc_app.hpp"

using namespace app;

static Gpu *gpu;
static std::byte *memory, *mapping;
static Handle *handle;

extern "C" int share() {
  return run_alone([] {
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
