// The violation: a process gets handle data for the same memory again for every message, and puts none.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

int main() {
  return run_alone([] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(size);
    for (int message = 0; message < 300; ++message) get(memory, gpu);
    gpu.free(memory);
  });
}
