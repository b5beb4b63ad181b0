// The violation: a handle is put whose data is a null pointer, as the v1 adapter hands it out where a get has failed.
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
