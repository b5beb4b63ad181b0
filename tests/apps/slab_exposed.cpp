// Worth a note: the shared memory comes from a pool of the adapter, so other memory of the producer lies next to it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 4096;

static void producer(Peer &consumer) {
  Gpu gpu;
  std::byte *secret = gpu.allocate(size);
  auto [memory, handle] = export_pattern(gpu, size, 39);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
  gpu.free(secret);
  print("one of two was shared");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
