// No violation, but worth a note: the producer frees its memory before it puts the handle, when no process has it open.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 11);
  consumer.send(handle.data());
  consumer.await("closed");
  gpu.free(memory);
  put(handle, gpu);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
  producer.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
