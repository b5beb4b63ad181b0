// Two processes share memory of a sub-device. The producer fills it with a kernel on the other sub-device of the same device, and the
// consumer opens it on that one.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace extension = sycl::ext::oneapi::experimental;

constexpr size_t count = 1 << 16;

// The parts of the device, and a queue of each. The context is that of the whole device, because the v2 adapter launches only kernels
// that were built for it.
struct Parts {
  sycl::device whole{sycl::gpu_selector_v};
  std::vector<sycl::device> parts = whole.create_sub_devices<sycl::info::partition_property::partition_by_affinity_domain>(
      sycl::info::partition_affinity_domain::next_partitionable);
  sycl::context context{whole};
  std::vector<sycl::queue> queues;

  Parts() {
    require(parts.size() == 2, "there are not two sub-devices");
    for (const auto &part : parts) queues.emplace_back(context, part, sycl::property::queue::in_order{});
  }
};

static void producer(Peer &consumer) {
  Parts gpu;
  auto source = extension::create_kernel_bundle_from_source(gpu.context, extension::source_language::spirv,
                                                            spirv::scale());
  auto kernel = extension::build(source).ext_oneapi_get_kernel("scale");
  auto *memory = sycl::malloc_device<uint32_t>(count, gpu.parts[0], gpu.context);
  auto *ones = sycl::malloc_device<uint32_t>(count, gpu.parts[1], gpu.context);
  require(memory != nullptr && ones != nullptr, "no device memory");
  const std::vector<uint32_t> numbers(count, 1);
  gpu.queues[0].memcpy(ones, numbers.data(), count * sizeof *ones).wait();
  gpu.queues[1].submit([&](sycl::handler &handler) {
    handler.set_args(memory, ones, uint32_t{41});
    handler.parallel_for(sycl::range<1>(count), kernel);
  }).wait_and_throw();
  auto handle = ipc::get(memory, gpu.context);
  consumer.send(handle.data());
  consumer.await("closed");
  ipc::put(handle, gpu.context);
  sycl::free(memory, gpu.context);
  sycl::free(ones, gpu.context);
  print("the producer's sub-devices: " + std::to_string(gpu.parts.size()));
}

static void consumer(Peer &producer) {
  Parts gpu;
  void *memory = ipc::open(producer.receive(), gpu.context, gpu.parts[1]);
  require(memory != nullptr, "open handed out no pointer");
  std::vector<uint32_t> numbers(count);
  gpu.queues[1].memcpy(numbers.data(), memory, count * sizeof(uint32_t)).wait();
  print(numbers == std::vector<uint32_t>(count, 42) ? "the consumer sees the numbers" : "the consumer sees something else");
  ipc::close(memory, gpu.context);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
