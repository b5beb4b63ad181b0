// For the SYCL test programs that allocate and free by commands of a queue.
#pragma once

#include "ipc_app.hpp"

#include <sycl/ext/oneapi/experimental/async_alloc/async_alloc.hpp>
#include <sycl/ext/oneapi/experimental/async_alloc/memory_pool.hpp>

namespace app {

namespace async = sycl::ext::oneapi::experimental;

inline void async_release(Gpu &gpu, void *memory) {
  async::async_free(gpu.queue, memory);
  gpu.queue.wait();
}

} // namespace app
