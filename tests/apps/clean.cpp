// The clean program for memory IPC: each process releases everything that it acquired, in order.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 1);
  consumer.send(handle.data());
  consumer.await("closed");
  print("producer read " + checksum(gpu.read(memory, size)));
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  gpu.write(memory, pattern(size, 2));
  close(memory, gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
