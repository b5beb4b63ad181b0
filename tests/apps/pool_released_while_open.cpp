// The violation: the pool of memory is destroyed, and the memory with it, while the consumer still has it open.
#include "async_app.hpp"
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  {
    async::memory_pool pool(gpu.queue, sycl::usm::alloc::device);
    const Handle handle = get(async_allocate(gpu, pool, size, 22), gpu);
    consumer.send(handle.data());
    consumer.await("open");
    put(handle, gpu);
  }
  consumer.say("released");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  std::byte *memory = open_and_read(producer, gpu, size);
  producer.say("open");
  producer.await("released");
  close(memory, gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
