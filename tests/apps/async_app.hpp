// For the SYCL test programs that allocate and free by commands of a queue.
#pragma once

#include "ipc_app.hpp"

#include <sycl/ext/oneapi/experimental/async_alloc/async_alloc.hpp>
#include <sycl/ext/oneapi/experimental/async_alloc/memory_pool.hpp>

namespace app {

namespace async = sycl::ext::oneapi::experimental;

// Device memory with a pattern, allocated by the queue: from the default pool, or from another.
inline std::byte *filled(Gpu &gpu, void *memory, size_t size, uint32_t seed) {
  require(memory != nullptr, "no device memory");
  gpu.queue.wait();
  const Bytes data = pattern(size, seed);
  gpu.write(memory, data);
  print("producer wrote " + checksum(data));
  return static_cast<std::byte *>(memory);
}
inline std::byte *async_allocate(Gpu &gpu, size_t size, uint32_t seed) {
  return filled(gpu, async::async_malloc(gpu.queue, sycl::usm::alloc::device, size), size, seed);
}
inline std::byte *async_allocate(Gpu &gpu, const async::memory_pool &pool, size_t size, uint32_t seed) {
  return filled(gpu, async::async_malloc_from_pool(gpu.queue, size, pool), size, seed);
}
inline void async_release(Gpu &gpu, void *memory) {
  async::async_free(gpu.queue, memory);
  gpu.queue.wait();
}

} // namespace app
