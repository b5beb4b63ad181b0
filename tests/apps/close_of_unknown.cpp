// The violation: a close of a pointer that no open has returned: the producer's own memory.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 6);
    print("close of own memory " + outcome([memory = memory, &gpu] { close(memory, gpu); }));
    put(handle, gpu);
    gpu.free(memory);
  });
}
