// Kernels and copies in turns, on an in-order queue and on one whose commands only events order. An adapter may pass the
// copies to another queue of the device than the kernels. If the device offers it, a kernel uses memory of the process, too.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace extension = sycl::ext::oneapi::experimental;

constexpr size_t count = 1 << 16;
constexpr int rounds = 100;

template <typename Kernel> static bool run(const Gpu &gpu, const Kernel &kernel, sycl::queue queue, bool ordered) {
  auto *outside = sycl::malloc_host<uint32_t>(count, queue), *seen = sycl::malloc_host<uint32_t>(count, queue);
  auto *first = sycl::malloc_device<uint32_t>(count, queue), *second = sycl::malloc_device<uint32_t>(count, queue);
  std::fill_n(outside, count, 1u);
  const auto after = [&](const sycl::event &event) { return ordered ? std::vector<sycl::event>{} : std::vector{event}; };
  sycl::event last;
  uint32_t expected = 1;
  for (int round = 0; round < rounds; ++round) {
    last = queue.memcpy(first, outside, count * sizeof *first, after(last));
    last = queue.memset(second, 0xff, count * sizeof *second, after(last));
    last = queue.submit([&](sycl::handler &handler) {
      handler.depends_on(after(last));
      handler.set_args(second, first, uint32_t{3});
      handler.parallel_for(sycl::range<1>(count), kernel);
    });
    last = queue.memcpy(seen, second, count * sizeof *seen, after(last));
    last = queue.memcpy(outside, seen, count * sizeof *seen, after(last));
    expected = expected * 3 + 1;
  }
  queue.wait_and_throw();
  const bool right = std::all_of(outside, outside + count, [&](uint32_t value) { return value == expected; });
  for (void *memory : {static_cast<void *>(outside), static_cast<void *>(seen), static_cast<void *>(first),
                       static_cast<void *>(second)})
    sycl::free(memory, gpu.context);
  return right;
}

int main() {
  Gpu gpu;
  auto source = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::spirv,
                                                            spirv::scale());
  auto kernel = extension::build(source).ext_oneapi_get_kernel("scale");
  print(run(gpu, kernel, gpu.queue, true) ? "in order: right" : "in order: wrong");
  print(run(gpu, kernel, sycl::queue{gpu.context, gpu.device}, false) ? "by events: right" : "by events: wrong");
  if (!gpu.device.has(sycl::aspect::usm_system_allocations)) return 0;
  std::vector<uint32_t> from(count, 1), to(count);
  gpu.queue.submit([&](sycl::handler &handler) {
    handler.set_args(to.data(), from.data(), uint32_t{3});
    handler.parallel_for(sycl::range<1>(count), kernel);
  }).wait_and_throw();
  print(to == std::vector<uint32_t>(count, 4) ? "memory of the process: right" : "memory of the process: wrong");
}
