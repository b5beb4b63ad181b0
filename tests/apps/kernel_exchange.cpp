// The kernels of two processes work on memory that they share: the producer's fills it, the consumer's changes it.
#include "ipc_app.hpp"
#include "spirv.hpp"

#include <sycl/kernel_bundle.hpp>

using namespace app;
namespace compiler = sycl::ext::oneapi::experimental;

constexpr size_t count = 200'000;
constexpr size_t size = count * sizeof(uint32_t);

// The kernel `scale`, and memory of 32-bit numbers.
struct Scaler {
  Gpu gpu;
  sycl::kernel kernel = build();

  sycl::kernel build() {
    auto source = compiler::create_kernel_bundle_from_source(gpu.context, compiler::source_language::spirv,
                                                                   spirv::scale());
    return compiler::build(source).ext_oneapi_get_kernel("scale");
  }
  void scale(void *to, const void *from, uint32_t factor) {
    gpu.queue.submit([&](sycl::handler &handler) {
      handler.set_args(static_cast<uint32_t *>(to), static_cast<const uint32_t *>(from), factor);
      handler.parallel_for(sycl::range<1>(count), kernel);
    });
  }
  Bytes numbers(uint32_t first, uint32_t step) {
    Bytes data(size);
    for (size_t at = 0; at < count; ++at) {
      const uint32_t value = first + step * static_cast<uint32_t>(at);
      std::memcpy(data.data() + at * sizeof value, &value, sizeof value);
    }
    return data;
  }
  void expect(const std::string &who, const void *memory, uint32_t first, uint32_t step) {
    print(who + (gpu.read(memory, size) == numbers(first, step) ? " sees the results" : " sees something else"));
  }
};

static void producer(Peer &consumer) {
  Scaler scaler;
  std::byte *numbers = scaler.gpu.allocate(size), *memory = scaler.gpu.allocate(size);
  scaler.gpu.write(numbers, scaler.numbers(0, 1));
  // Between two copies of an in-order queue, without a wait.
  scaler.gpu.queue.memset(memory, 0xff, size);
  scaler.scale(memory, numbers, 2);
  scaler.gpu.queue.memset(numbers, 0, size).wait();
  Handle handle = get(memory, scaler.gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  scaler.expect("producer", memory, 4, 6);
  put(handle, scaler.gpu);
  scaler.gpu.free(memory);
  scaler.gpu.free(numbers);
}

static void consumer(Peer &producer) {
  Scaler scaler;
  std::byte *memory = open(producer.receive(), scaler.gpu);
  scaler.expect("consumer", memory, 1, 2);
  scaler.scale(memory, memory, 3);
  scaler.gpu.queue.wait();
  close(memory, scaler.gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
