// The producer (the child here) is killed while the consumer has its memory open; the consumer continues, and the mapping
// stays readable.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.kill();
  const int status = producer.wait_for_end();
  require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the producer was to be killed");
  print("consumer read " + checksum(gpu.read(memory, size)) + ", after the kill");
  close(memory, gpu);
}

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 14);
  consumer.send(handle.data());
  consumer.await("never sent");
}

int main(int argc, char **argv) { return run(argc, argv, consumer, producer, false); }
