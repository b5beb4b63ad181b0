// Compares what SYCL says of the device with what the engine of its kernels says of itself. It shares nothing.
#include "ipc_app.hpp"

#include <algorithm>

#include <dlfcn.h>

using namespace app;

// The numbers of cl.h and cl_ext.h.
enum : uint32_t {
  device_type_cpu = 2,
  max_work_group_size = 0x1004,
  address_bits = 0x100d,
  local_mem_size = 0x1023,
  extensions = 0x1030,
  double_fp_config = 0x1032,
  half_fp_config = 0x1033,
  sub_group_sizes = 0x4108,
};

// The engine, which is an OpenCL library, and its CPU.
class Engine {
public:
  Engine() {
    require(library != nullptr, "the engine cannot be opened");
    auto platforms = function<int (*)(uint32_t, void **, uint32_t *)>("clGetPlatformIDs");
    auto devices = function<int (*)(void *, uint64_t, uint32_t, void **, uint32_t *)>("clGetDeviceIDs");
    void *platform = nullptr;
    require(platforms(1, &platform, nullptr) == 0, "the engine has no platform");
    require(devices(platform, device_type_cpu, 1, &device, nullptr) == 0, "the engine has no CPU");
  }

  // The bytes of a property.
  std::string bytes(uint32_t property) const {
    size_t size = 0;
    require(get_info(device, property, 0, nullptr, &size) == 0, "the engine does not know a property");
    std::string value(size, '\0');
    get_info(device, property, size, value.data(), nullptr);
    return value;
  }

  // The values of a property.
  template <typename T> std::vector<T> list(uint32_t property) const {
    const std::string value = bytes(property);
    std::vector<T> all(value.size() / sizeof(T));
    std::memcpy(all.data(), value.data(), all.size() * sizeof(T));
    return all;
  }

  template <typename T> T number(uint32_t property) const { return list<T>(property).at(0); }

private:
  template <typename T> T function(const char *name) const { return reinterpret_cast<T>(dlsym(library, name)); }

  void *library = dlopen(std::getenv("ZE_SOFT_ENGINE"), RTLD_NOW);
  void *device = nullptr;
  int (*get_info)(void *, uint32_t, size_t, void *, size_t *) =
      function<int (*)(void *, uint32_t, size_t, void *, size_t *)>("clGetDeviceInfo");
};

static void compare(const std::string &name, bool right) { print(name + (right ? ": right" : ": wrong")); }

int main() {
  return guarded([] {
    const Gpu gpu;
    const Engine engine;
    const sycl::device &device = gpu.device;
    const auto sizes = device.get_info<sycl::info::device::sub_group_sizes>();
    const auto known = engine.list<size_t>(sub_group_sizes);
    const bool atomic64 = engine.bytes(extensions).find("cl_khr_int64_base_atomics") != std::string::npos;
    compare("half precision", device.has(sycl::aspect::fp16) == (engine.number<uint64_t>(half_fp_config) != 0));
    compare("double precision", device.has(sycl::aspect::fp64) == (engine.number<uint64_t>(double_fp_config) != 0));
    compare("64-bit atomics", device.has(sycl::aspect::atomic64) == atomic64);
    compare("address bits", device.get_info<sycl::info::device::address_bits>() == engine.number<uint32_t>(address_bits));
    compare("sizes of sub-groups", !sizes.empty() && std::all_of(sizes.begin(), sizes.end(), [&](size_t size) {
      return std::find(known.begin(), known.end(), size) != known.end();
    }));
    compare("largest group", device.get_info<sycl::info::device::max_work_group_size>() <= engine.number<size_t>(max_work_group_size));
    compare("local memory", device.get_info<sycl::info::device::local_mem_size>() <= engine.number<uint64_t>(local_mem_size));
  });
}
