// The violation: the consumer opens handle data of physical memory as handle data of USM.
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  Handle handle = ipc_physical::get(memory);
  consumer.send(handle.data());
  consumer.await("done");
  ipc_physical::put(handle, gpu.context);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open as memory " + outcome([&] { ipc::open(data, gpu.context, gpu.device); }));
  producer.say("done");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
