// The violation: the consumer opens memory that the producer has freed. It came from a pool, so the adapters still open it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 33);
  const Bytes data = handle.data();
  put(handle, gpu);
  gpu.free(memory);
  consumer.send(data);
  consumer.await("closed");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
