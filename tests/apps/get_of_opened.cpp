// Worth a note: the consumer gets handle data of memory that it has opened, to forward it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 32);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  print("get of opened memory " + outcome([&] { get(memory, gpu); }));
  close(memory, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
