// For the programs that share physical memory.
#pragma once

#include "ipc_app.hpp"

#include <sycl/ext/oneapi/experimental/ipc_physical_memory.hpp>
#include <sycl/ext/oneapi/virtual_mem/virtual_mem.hpp>

namespace app {

namespace experimental = sycl::ext::oneapi::experimental;
namespace ipc_physical = sycl::ext::oneapi::experimental::ipc::physical_memory;
using experimental::physical_mem;

inline physical_mem make_shared_memory(const Gpu &gpu, size_t size) {
  return physical_mem(gpu.device, gpu.context, size, experimental::properties{experimental::enable_ipc{true}});
}

// Physical memory is created and mapped in multiples of this.
inline size_t granularity(const Gpu &gpu) { return experimental::get_mem_granularity(gpu.device, gpu.context); }

// Reserved addresses, and what is mapped there.
class Addresses {
public:
  Addresses(const Gpu &gpu, size_t size) : gpu(gpu), start(experimental::reserve_virtual_mem(size, gpu.context)), size(size) {}
  Addresses(const Addresses &) = delete;
  ~Addresses() { experimental::free_virtual_mem(start, size, gpu.context); }

  // Maps a part of physical memory at an offset from the first address.
  void map(const physical_mem &memory, size_t at, size_t length, size_t offset = 0) {
    void *mapped = memory.map(start + at, length, experimental::address_access_mode::read_write, offset);
    require(mapped == pointer() + at, "mapped at another address than asked for");
  }
  void unmap(size_t at, size_t length) { experimental::unmap(pointer() + at, length, gpu.context); }

  std::byte *pointer() const { return reinterpret_cast<std::byte *>(start); }
  size_t length() const { return size; }

private:
  const Gpu &gpu;
  uintptr_t start;
  size_t size;
};

} // namespace app
