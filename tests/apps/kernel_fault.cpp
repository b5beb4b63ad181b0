// A kernel follows a wild pointer. The device is lost, and the program says so and ends as it chooses.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace compiler = sycl::ext::oneapi::experimental;

int main() {
  Gpu gpu;
  auto source = compiler::create_kernel_bundle_from_source(gpu.context, compiler::source_language::spirv,
                                                           spirv::scale());
  auto kernel = compiler::build(source).ext_oneapi_get_kernel("scale");
  auto *wild = reinterpret_cast<uint32_t *>(0x1000);
  auto *memory = sycl::malloc_device<uint32_t>(1 << 20, gpu.queue);
  try {
    gpu.queue.submit([&](sycl::handler &handler) {
      handler.set_args(memory, wild, 1u);
      handler.parallel_for(sycl::range<1>(1 << 20), kernel);
    });
    gpu.queue.wait_and_throw();
    print("nothing happened");
  } catch (const sycl::exception &error) {
    print(std::string(error.what()).find("DEVICE_LOST") == std::string::npos ? error.what() : "the device is lost");
  }
  sycl::free(memory, gpu.queue);
  return 3;
}
