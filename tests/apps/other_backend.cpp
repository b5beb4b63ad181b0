// A clean program whose consumer runs with another backend than its producer: the one in the argument.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 1);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  // Twice, so that an adapter returns the same pointer again.
  std::byte *one = open(data, gpu), *other = open(data, gpu);
  print("consumer read " + checksum(gpu.read(one, size)));
  close(one, gpu);
  print("consumer read " + checksum(gpu.read(other, size)));
  close(other, gpu);
  print("third close " + outcome([&] { close(other, gpu); }));
  producer.say("closed");
}

int main(int argc, char **argv) {
  // This process has read its environment already; the other one is about to.
  if (argc == 2) setenv("URSCOPE_BACKEND", argv[1], 1);
  return run(argc, argv, producer, consumer);
}
