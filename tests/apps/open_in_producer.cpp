// Worth a note: a process opens its own handle three times.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 37);
    for (int i = 0; i < 3; i++) close(open(handle.data(), gpu), gpu);
    put(handle, gpu);
    gpu.free(memory);
    print("opened at home 3 times");
  });
}
