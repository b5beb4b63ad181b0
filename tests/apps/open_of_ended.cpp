// The producer (the child here) is killed before the consumer opens its handle, so the open is refused. (The v1 adapter reports success
// for it, and returns nothing.)
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = unpooled;

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes handle = producer.receive();
  producer.kill();
  const int status = producer.wait_for_end();
  require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the producer was to be killed");
  bool refused = false;
  try {
    refused = ipc::open(handle, gpu.context, gpu.device) == nullptr;
  } catch (const sycl::exception &) {
    refused = true;
  }
  require(refused, "memory of a process that has ended was opened");
}

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 25);
  consumer.send(handle.data());
  consumer.await("never sent");
}

int main(int argc, char **argv) { return run(argc, argv, consumer, producer, false); }
