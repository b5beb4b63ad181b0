// The violation: the producer frees memory that the consumer has open, from bytes that it had opened and closed before. The v1 adapter
// writes into the bytes of an open, which must not show.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 24);
  consumer.send(handle.data());
  consumer.await("open");
  put(handle, gpu);
  gpu.free(memory);
  consumer.say("freed");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  Bytes bytes = producer.receive();
  const Bytes before = bytes;
  close(open(bytes, gpu), gpu);
  print(bytes == before ? "the bytes are unchanged" : "the bytes have changed");
  std::byte *memory = open(bytes, gpu);
  producer.say("open");
  producer.await("freed");
  close(memory, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
