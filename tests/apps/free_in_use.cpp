// The violation: the producer frees exported memory that its copy still writes to. (Its handle is put, and the mapping closed, in time.)
// Its device is slowed, so that the copy always comes late.
#include "ipc_app.hpp"

#include <cstdlib>

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  setenv("ZE_SOFT_DELAY", "4s", 1);
  Gpu gpu;
  std::byte *memory = gpu.allocate(size);
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("closed");
  put(handle, gpu);
  const Bytes data = pattern(size, 33);
  sycl::event copied = gpu.queue.memcpy(memory, data.data(), size);
  gpu.free(memory);
  copied.wait();
  print("producer is done");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open(producer.receive(), gpu);
  close(memory, gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
