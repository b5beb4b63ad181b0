// The violation: a process shares a new buffer in each round, and frees it without a put. With the argument "mended" it puts.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

int main(int argc, char **argv) {
  const bool puts = argc > 1 && std::string(argv[1]) == "mended";
  return run_alone([puts] {
    Gpu gpu;
    for (int round = 0; round < 300; ++round) {
      std::byte *memory = gpu.allocate(size);
      const Handle handle = get(memory, gpu);
      if (puts) put(handle, gpu);
      gpu.free(memory);
    }
  });
}
