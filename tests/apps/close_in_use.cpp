// The violation: the consumer closes memory that its copy still reads, and tells the producer, which uses the memory for something
// else. With the argument "mended" the consumer waits for the copy first. Its device is slowed, so that the copy always comes late.
#include "ipc_app.hpp"

#include <cstdlib>

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer, const std::string &mode) {
  consumer.say(mode);
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 31);
  consumer.send(handle.data());
  consumer.await("closed");
  gpu.write(memory, pattern(size, 32));
  consumer.say("used again");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  const bool waits = producer.receive_word() == "mended";
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Gpu gpu;
  std::byte *memory = open(producer.receive(), gpu);
  Bytes data(size);
  sycl::event copied = gpu.queue.memcpy(data.data(), memory, size);
  if (waits) copied.wait();
  close(memory, gpu);
  producer.say("closed");
  producer.await("used again");
  copied.wait();
  print(data == pattern(size, 31) ? "consumer has what was sent" : "consumer has something else");
}

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "forgotten";
  return run(argc, argv, [&](Peer &other) { producer(other, mode); }, consumer);
}
