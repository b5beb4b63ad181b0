// A command buffer that is changed after it was made: the arguments of its kernel, and then the range.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace extension = sycl::ext::oneapi::experimental;

constexpr size_t count = 4096;

int main() {
  Gpu gpu;
  require(gpu.device.has(sycl::aspect::ext_oneapi_graph), "the device does not update command buffers");
  auto source = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::spirv,
                                                            spirv::scale());
  auto kernel = extension::build(source).ext_oneapi_get_kernel("scale");
  uint32_t *memory[3];
  for (auto &each : memory) each = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  std::fill_n(memory[0], count, 1u);

  extension::command_graph graph{gpu.context, gpu.device};
  extension::dynamic_parameter<uint32_t *> target{memory[1]};
  extension::dynamic_parameter<uint32_t> factor{2};
  auto node = graph.add([&](sycl::handler &handler) {
    handler.set_arg(0, target);
    handler.set_arg(1, memory[0]);
    handler.set_arg(2, factor);
    handler.parallel_for(sycl::range<1>(count), kernel);
  });
  auto executable = graph.finalize(extension::property::graph::updatable{});
  const auto runs = [&] {
    for (size_t each : {1, 2}) std::fill_n(memory[each], count, 0u);
    gpu.queue.ext_oneapi_graph(executable).wait_and_throw();
  };
  const auto holds = [&](size_t which, size_t length, uint32_t value) {
    for (size_t index = 0; index < count; ++index)
      if (memory[which][index] != (index < length ? value : 0)) return print("wrong");
    print("right");
  };
  runs();
  holds(1, count, 3);
  target.update(memory[2]);
  factor.update(41);
  executable.update(node);
  runs();
  holds(2, count, 42);
  holds(1, 0, 0);
  node.update_range(sycl::range<1>(count / 4));
  executable.update(node);
  runs();
  holds(2, count / 4, 42);
  for (void *each : memory) sycl::free(each, gpu.queue);
}
