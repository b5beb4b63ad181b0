// The violation: the producer puts its handle before the consumer opens it. The adapters happen to open it all the same.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 24);
  const Bytes data = handle.data();
  put(handle, gpu);
  consumer.send(data);
  consumer.await("closed");
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
