// The violation: the producer frees memory that the consumer (the child) has open. The consumer makes no further call, so only its
// being there shows that it still holds the memory; it is killed long after the free.
#include "ipc_app.hpp"

#include <chrono>
#include <thread>

using namespace app;

constexpr size_t size = unpooled;

static void stay_idle() { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); }

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 23);
  consumer.send(handle.data());
  consumer.await("open");
  put(handle, gpu);
  stay_idle();
  gpu.free(memory);
  stay_idle();
  consumer.kill();
  const int status = consumer.wait_for_end();
  require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the consumer was to be killed");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  open_and_read(producer, gpu, size);
  producer.say("open");
  producer.await("never sent");
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
