// The violation: the consumer closes memory that its kernel still reads. With the argument "mended" it waits for the kernel first.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace compiler = sycl::ext::oneapi::experimental;

constexpr size_t count = 1 << 16;
constexpr size_t size = count * sizeof(uint32_t);

static Bytes numbers(uint32_t first, uint32_t step) {
  Bytes data(size);
  for (size_t at = 0; at < count; ++at) {
    const uint32_t value = first + step * static_cast<uint32_t>(at);
    std::memcpy(data.data() + at * sizeof value, &value, sizeof value);
  }
  return data;
}

static Reading scaled(Gpu &gpu, const std::byte *memory) {
  auto source = compiler::create_kernel_bundle_from_source(gpu.context, compiler::source_language::spirv, spirv::scale());
  const sycl::kernel kernel = compiler::build(source).ext_oneapi_get_kernel("scale");
  auto *result = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  const auto scale = [&](sycl::handler &handler) {
    handler.set_args(result, reinterpret_cast<const uint32_t *>(memory), uint32_t{3});
    handler.parallel_for(sycl::range<1>(count), kernel);
  };
  return {gpu.queue.submit(scale), [&gpu, result] {
            const bool is_right = std::memcmp(result, numbers(1, 3).data(), size) == 0;
            sycl::free(result, gpu.queue);
            return is_right;
          }};
}

int main(int argc, char **argv) { return close_while_read(argc, argv, numbers(0, 1), numbers(7, 0), scaled); }
