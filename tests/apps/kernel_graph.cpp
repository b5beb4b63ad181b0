// Kernels and a fill in a command buffer, which is executed several times.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace extension = sycl::ext::oneapi::experimental;

constexpr size_t count = 4096;

int main() {
  Gpu gpu;
  auto source = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::spirv,
                                                            spirv::scale());
  auto kernel = extension::build(source).ext_oneapi_get_kernel("scale");
  auto *first = sycl::malloc_shared<uint32_t>(count, gpu.queue), *second = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  std::fill_n(first, count, 1u);

  extension::command_graph graph{gpu.context, gpu.device};
  const auto scale = [&](uint32_t *to, const uint32_t *from, uint32_t factor) {
    return [=](sycl::handler &handler) {
      handler.set_args(to, from, factor);
      handler.parallel_for(sycl::range<1>(count), kernel);
    };
  };
  const auto after = [](auto &node) { return extension::property::node::depends_on(node); };
  auto cleared = graph.add([&](sycl::handler &handler) { handler.memset(second, 0xff, count * sizeof *second); });
  auto there = graph.add(scale(second, first, 2), {after(cleared)});
  graph.add(scale(first, second, 1), {after(there)});
  auto executable = graph.finalize();
  for (int time = 0; time < 20; ++time) gpu.queue.ext_oneapi_graph(executable);
  gpu.queue.wait_and_throw();

  uint32_t expected = 1;
  for (int time = 0; time < 20; ++time) expected = expected * 2 + 2;
  const bool right = std::all_of(first, first + count, [&](uint32_t value) { return value == expected; });
  print(right ? "right" : "wrong");
  sycl::free(second, gpu.queue);
  sycl::free(first, gpu.queue);
}
