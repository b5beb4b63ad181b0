// The violation: the consumer opens handle data of freed memory whose address has been allocated again, and reads memory that
// was never shared with it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 34);
  const Bytes data = handle.data();
  put(handle, gpu);
  gpu.free(memory);
  std::byte *secret = gpu.allocate(size);
  require(secret == memory, "the pool hands out another address");
  const Bytes content = pattern(size, 35);
  gpu.write(secret, content);
  print("producer wrote " + checksum(content) + ", and does not share it");
  consumer.send(data);
  consumer.await("closed");
  gpu.free(secret);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
