// The violation: the producer puts its handle to physical memory before the consumer opens it: the put has closed the descriptor.
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  Handle handle = ipc_physical::get(memory);
  const Bytes data = handle.data();
  ipc_physical::put(handle, gpu.context);
  consumer.send(data);
  consumer.await("done");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open after the put " + outcome([&] { ipc_physical::open(data, gpu.context, gpu.device); }));
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
