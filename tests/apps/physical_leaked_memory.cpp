// The violation: the consumer never closes the physical memory that it opened.
#include "ipc_app.hpp"

#include "physical_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  physical_mem memory = make_shared_memory(gpu, granularity(gpu));
  Handle handle = ipc_physical::get(memory);
  consumer.send(handle.data());
  consumer.await("open");
  ipc_physical::put(handle, gpu.context);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  // The object is never destroyed, and the end of the process does not destroy it either.
  auto *memory = new physical_mem(ipc_physical::open(producer.receive(), gpu.context, gpu.device));
  print("consumer keeps " + std::to_string(memory->size() / granularity(gpu)) + " granule");
  producer.say("open");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
