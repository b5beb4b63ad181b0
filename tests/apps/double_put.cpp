// The violation: the same handle is put twice.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 12);
    put(handle, gpu);
    print("second put " + outcome([handle = handle, &gpu] { put(handle, gpu); }));
    gpu.free(memory);
  });
}
