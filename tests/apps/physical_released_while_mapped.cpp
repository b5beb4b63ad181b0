// The violation: the consumer closes physical memory that it has mapped, and unmaps it afterwards.
#include "ipc_app.hpp"

#include "physical_app.hpp"

#include <memory>

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  physical_mem memory = make_shared_memory(gpu, size);
  Addresses addresses(gpu, size);
  addresses.map(memory, 0, size);
  const Bytes data = pattern(size, 5);
  gpu.write(addresses.pointer(), data);
  print("producer wrote " + checksum(data));
  addresses.unmap(0, size);
  Handle handle = ipc_physical::get(memory);
  consumer.send(handle.data());
  consumer.await("closed");
  ipc_physical::put(handle, gpu.context);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  auto memory = std::make_unique<physical_mem>(ipc_physical::open(producer.receive(), gpu.context, gpu.device));
  Addresses addresses(gpu, size);
  addresses.map(*memory, 0, size);
  print("consumer read " + checksum(gpu.read(addresses.pointer(), size)));
  memory.reset();
  addresses.unmap(0, size);
  print("consumer unmapped it afterwards");
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
