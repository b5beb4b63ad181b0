// The violation: a command of a queue frees memory that the consumer still has open. (Its handle is put in time.)
#include "async_app.hpp"
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  std::byte *memory = async_allocate(gpu, size, 21);
  const Handle handle = get(memory, gpu);
  consumer.send(handle.data());
  consumer.await("open");
  put(handle, gpu);
  async_release(gpu, memory);
  consumer.say("freed");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.say("open");
  producer.await("freed");
  close(memory, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
