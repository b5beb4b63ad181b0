// The producer changes memory that the consumer has open, and says that it is ready. With the argument "forgotten" it
// does not wait for its copy before. The producer's device may be slowed; the consumer's is not.
#include "ipc_app.hpp"

#include <cstdlib>

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer, bool forgets) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 1);
  consumer.send(handle.data());
  consumer.await("open");
  const Bytes data = pattern(size, 2);
  sycl::event copied = gpu.queue.memcpy(memory, data.data(), size);
  if (!forgets) copied.wait();
  consumer.say("ready");
  consumer.await("closed");
  copied.wait();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  unsetenv("ZE_SOFT_DELAY");
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.say("open");
  producer.await("ready");
  const Bytes data = gpu.read(memory, size);
  print(data == pattern(size, 2) ? "then the new data" : data == pattern(size, 1) ? "then the old data" : "then a mixture");
  close(memory, gpu);
  producer.say("closed");
}

int main(int argc, char **argv) {
  const bool forgets = argc > 1 && std::string(argv[1]) == "forgotten";
  return run(argc, argv, [&](Peer &other) { producer(other, forgets); }, consumer);
}
