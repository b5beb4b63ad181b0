// Prints the GPU that the runtime chooses, and through what: one "KEY: VALUE" a line. It shares nothing.
#include "ipc_app.hpp"

#include <fstream>
#include <set>
#include <sstream>

using namespace app;

// The libraries of SYCL and of Unified Runtime in this process, by the names of their files.
static std::set<std::string> libraries() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> found;
  for (std::string line; std::getline(maps, line);) {
    const std::string name = line.substr(line.rfind('/') + 1);
    for (const char *begin : {"libsycl.so", "libur_adapter_"})
      if (name.rfind(begin, 0) == 0) found.insert(name);
  }
  return found;
}

int main() {
  return guarded([] {
    const Gpu gpu;
    std::ostringstream backend;
    backend << gpu.device.get_backend();
    print("gpu: " + gpu.device.get_info<sycl::info::device::name>());
    print("driver: " + gpu.device.get_info<sycl::info::device::driver_version>());
    print("platform: " + gpu.device.get_platform().get_info<sycl::info::platform::version>());
    print("backend: " + backend.str());
    for (const std::string &name : libraries()) print("library: " + name);
  });
}
