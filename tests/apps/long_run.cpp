// A consumer that reads shared memory many times. `long_run COPIES` is clean; with "closed" behind it, the consumer reads once more after its
// close, and with "early", it writes and tells the producer, which reads, before it waits.
#include "ipc_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Shared shared;
  shared.send(consumer, "written");
  shared.gpu.read(shared.memory, 64);
  consumer.say("read");
  consumer.await("closed");
  shared.end();
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const long copies = std::stol(argument(0));
  const std::string mistake = argument(1);
  std::byte *memory = open(producer.receive(), gpu), *own = gpu.allocate(64);
  const auto read = [&] { gpu.queue.memcpy(own, memory, 64); };
  for (long copy = 0; copy < copies; ++copy) {
    read();
    if (copy % 1000 == 999) gpu.queue.wait();
  }
  gpu.queue.memset(memory, 7, 64);
  if (mistake != "early") gpu.queue.wait();
  producer.say("written");
  producer.await("read");
  gpu.queue.wait();
  close(memory, gpu);
  producer.say("closed");
  if (mistake == "closed") read();
  gpu.free(own);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer); }
