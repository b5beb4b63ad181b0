// The violation: the consumer gets handle data of its mapping, and frees it, after it has closed it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 31);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  close(memory, gpu);
  print("get of a closed mapping " + outcome([&] { get(memory, gpu); }));
  print("free of a closed mapping " + outcome([&] { gpu.free(memory); }));
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
