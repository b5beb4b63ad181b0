// The consumer unmaps physical memory that its copy still reads, and the producer uses the memory for something else. Fixed, the consumer
// waits for the copy first. Its device is slowed, so that the copy always comes late.
#include "physical_app.hpp"

using namespace app;

// What is mapped for as long as this lives.
struct Mapped {
  Gpu &gpu;
  const physical_mem &memory;
  Addresses at{gpu, memory.size()};

  Mapped(Gpu &gpu, const physical_mem &memory) : gpu(gpu), memory(memory) { at.map(memory, 0, memory.size()); }
  ~Mapped() { at.unmap(0, memory.size()); }
};

static void producer(Peer &consumer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  physical_mem memory = make_shared_memory(gpu, size);
  const Mapped mapped(gpu, memory);
  gpu.write(mapped.at.pointer(), pattern(size, 1));
  auto handle = ipc_physical::get(memory);
  consumer.send(handle.data());
  consumer.await("unmapped");
  gpu.write(mapped.at.pointer(), pattern(size, 2));
  consumer.say("used again");
  ipc_physical::put(handle, gpu.context);
}

static void consumer(Peer &producer) {
  setenv("ZE_SOFT_DELAY", "2s", 1);
  Gpu gpu;
  Bytes data;
  sycl::event copied;
  {
    const physical_mem memory = ipc_physical::open(producer.receive(), gpu.context, gpu.device);
    const Mapped mapped(gpu, memory);
    data.resize(memory.size());
    copied = gpu.queue.memcpy(data.data(), mapped.at.pointer(), data.size());
    if (is_fixed()) copied.wait();
  }
  producer.say("unmapped");
  producer.await("used again");
  copied.wait();
  print(data == pattern(data.size(), 1) ? "consumer has what was sent" : "consumer has something else");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
