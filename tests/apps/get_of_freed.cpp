// The violation: a get of freed memory. The adapter refuses it for an allocation of the driver, but not for one from a pool.
#include "ipc_app.hpp"

using namespace app;

static void get_and_put(Gpu &gpu, size_t size, const char *what) {
  std::byte *memory = gpu.allocate(size);
  gpu.free(memory);
  print(std::string("get of freed memory ") + what + " " + outcome([&] { put(get(memory, gpu), gpu); }));
}

int main() {
  return run_alone([] {
    Gpu gpu;
    get_and_put(gpu, unpooled, "of the driver");
    get_and_put(gpu, 1 << 20, "of a pool");
  });
}
