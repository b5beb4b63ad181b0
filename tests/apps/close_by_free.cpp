// The violation: the consumer passes its mapping to sycl::free instead of closing it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 9);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  print("free of a mapping " + outcome([&] { gpu.free(memory); }));
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
