// The violation: handle data is got for memory of the host. The adapters accept what the driver can export.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

int main() {
  return run_alone([] {
    Gpu gpu;
    void *memory = sycl::malloc_host(size, gpu.context);
    require(memory != nullptr, "no host memory");
    try {
      put(ipc::get(memory, gpu.context), gpu);
    } catch (const sycl::exception &) {
    }
    sycl::free(memory, gpu.context);
  });
}
