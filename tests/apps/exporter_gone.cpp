// Worth a note: the producer (the child here) exits while the consumer has its memory open. The mapping stays readable.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.say("open");
  require(producer.wait_for_end() == 0, "the producer failed");
  print("consumer read " + checksum(gpu.read(memory, size)) + ", after the producer's end");
  close(memory, gpu);
}

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 36);
  consumer.send(handle.data());
  consumer.await("open");
  put(handle, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, consumer, producer, false); }
