// For the programs with kernels: `scale` of spirv.hpp, and numbers of 32 bits.
#pragma once

#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

namespace app {

namespace extension = sycl::ext::oneapi::experimental;

inline sycl::kernel scale_kernel(const sycl::context &context) {
  auto source = extension::create_kernel_bundle_from_source(context, extension::source_language::spirv, spirv::scale());
  return extension::build(source).ext_oneapi_get_kernel("scale");
}

// Multiplies numbers, and adds 1.
inline auto scale(sycl::kernel kernel, size_t count, void *to, const void *from, uint32_t factor, std::vector<sycl::event> after = {}) {
  return [=](sycl::handler &handler) {
    handler.depends_on(after);
    handler.set_args(static_cast<uint32_t *>(to), static_cast<const uint32_t *>(from), factor);
    handler.parallel_for(sycl::range<1>(count), kernel);
  };
}

inline Bytes numbers(size_t count, uint32_t first, uint32_t step) {
  Bytes data(count * sizeof(uint32_t));
  for (size_t at = 0; at < count; ++at) {
    const uint32_t value = first + step * static_cast<uint32_t>(at);
    std::memcpy(data.data() + at * sizeof value, &value, sizeof value);
  }
  return data;
}

} // namespace app
