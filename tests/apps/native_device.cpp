// SYCL allocates memory, and the program gets and opens its handle by Level Zero itself, with SYCL's own context: on the device of the
// memory, or, if the argument is "other", on the next one.
#include "ipc_app.hpp"
#include "ze_app.hpp"

#include <sycl/ext/oneapi/backend/level_zero.hpp>

using namespace app;

static ze_handle_t native(const sycl::device &device) {
  return reinterpret_cast<ze_handle_t>(sycl::get_native<sycl::backend::ext_oneapi_level_zero>(device));
}

int main(int argc, char **argv) {
  Gpu gpu;
  const bool other = argc > 1 && std::string(argv[1]) == "other";
  Ze ze(reinterpret_cast<ze_handle_t>(sycl::get_native<sycl::backend::ext_oneapi_level_zero>(gpu.context)));
  ze.device = native(other ? gpu.device.get_platform().get_devices().at(1) : gpu.device);
  std::byte *memory = gpu.allocate(unpooled);
  const auto handle = ze.get(memory);
  ze.close(ze.open(handle));
  ze.put(handle);
  gpu.free(memory);
  print("done");
}
