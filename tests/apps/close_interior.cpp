// The violation: the consumer closes a pointer into its mapping instead of the pointer that open returned.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 7);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  print("close of an interior pointer " + outcome([&] { close(memory + 4096, gpu); }));
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
