// The violation: the consumer closes memory that its kernel still reads, and tells the producer, which uses the memory for something
// else. With the argument "mended" the consumer waits for the kernel first. Its device is slowed, so that the kernel always comes late.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <cstdlib>

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

static void producer(Peer &consumer, const std::string &mode) {
  consumer.say(mode);
  Gpu gpu;
  std::byte *memory = gpu.allocate(size);
  gpu.write(memory, numbers(0, 1));
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  gpu.write(memory, numbers(7, 0));
  consumer.say("used again");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  const bool waits = producer.receive_word() == "mended";
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Gpu gpu;
  auto source = compiler::create_kernel_bundle_from_source(gpu.context, compiler::source_language::spirv, spirv::scale());
  const sycl::kernel kernel = compiler::build(source).ext_oneapi_get_kernel("scale");
  auto *result = sycl::malloc_shared<uint32_t>(count, gpu.queue);
  std::byte *memory = open(producer.receive(), gpu);
  const auto scale = [&](sycl::handler &handler) {
    handler.set_args(result, reinterpret_cast<const uint32_t *>(memory), uint32_t{3});
    handler.parallel_for(sycl::range<1>(count), kernel);
  };
  sycl::event scaled = gpu.queue.submit(scale);
  if (waits) scaled.wait();
  close(memory, gpu);
  producer.say("closed");
  producer.await("used again");
  scaled.wait();
  print(std::memcmp(result, numbers(1, 3).data(), size) == 0 ? "consumer has what was sent"
                                                             : "consumer has something else");
  sycl::free(result, gpu.queue);
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "forgotten";
  return run(argc, argv, [&](Peer &other) { producer(other, mode); }, consumer);
}
