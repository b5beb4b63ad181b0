// The violation: the consumer opens a handle and never closes the mapping.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 4);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  open_and_read(producer, gpu, size);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
