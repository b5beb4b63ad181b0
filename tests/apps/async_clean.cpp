// Correct: memory is allocated and freed by commands of a queue, three times, at addresses that may come again. The last handle is
// not put; it ends with the free of its memory.
#include "async_app.hpp"
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  for (uint32_t round = 0; round < 3; ++round) {
    std::byte *memory = async_allocate(gpu, size, round);
    const Handle handle = get(memory, gpu);
    consumer.send(handle.data());
    consumer.await("closed");
    if (round < 2) put(handle, gpu);
    async_release(gpu, memory);
  }
}

static void consumer(Peer &producer) {
  Gpu gpu;
  for (uint32_t round = 0; round < 3; ++round) {
    close(open_and_read(producer, gpu, size), gpu);
    producer.say("closed");
  }
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
