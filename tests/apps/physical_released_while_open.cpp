// The violation: the producer releases physical memory that the consumer still has open. (Its handle is put in time.)
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  {
    physical_mem memory = make_shared_memory(gpu, size);
    Addresses addresses(gpu, size);
    addresses.map(memory, 0, size);
    const Bytes data = pattern(size, 4);
    gpu.write(addresses.pointer(), data);
    print("producer wrote " + checksum(data));
    addresses.unmap(0, size);
    Handle handle = ipc_physical::get(memory);
    consumer.send(handle.data());
    consumer.await("open");
    ipc_physical::put(handle, gpu.context);
  }
  consumer.say("released");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const size_t size = granularity(gpu);
  physical_mem memory = ipc_physical::open(producer.receive(), gpu.context, gpu.device);
  producer.say("open");
  producer.await("released");
  Addresses addresses(gpu, size);
  addresses.map(memory, 0, size);
  print("consumer read " + checksum(gpu.read(addresses.pointer(), size)));
  addresses.unmap(0, size);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
