// The violation: a put of a handle whose data is a null pointer, as the v1 adapter returns it when a get fails.
#include "ipc_app.hpp"

using namespace app;

int main() {
  return run_alone([] {
    Gpu gpu;
    auto [memory, handle] = export_pattern(gpu, 1 << 20, 23);
    print("put of null " + outcome([&] { put(with_data_at(handle, nullptr), gpu); }));
    put(handle, gpu);
    gpu.free(memory);
  });
}
