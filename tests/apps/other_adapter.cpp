// The consumer uses the v2 adapter, and its producer the v1 adapter, whose handle data has another size.
#include "ipc_app.hpp"

using namespace app;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, unpooled, 26);
  consumer.send(handle.data());
  consumer.await("tried");
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu;
  const Bytes data = producer.receive();
  print("open " + outcome([&] { close(open(data, gpu), gpu); }));
  producer.say("tried");
}

int main(int argc, char **argv) {
  const Role parent = [](Peer &other) {
    setenv("SYCL_UR_USE_LEVEL_ZERO_V2", "0", 1); // The child has its environment by now.
    producer(other);
  };
  setenv("SYCL_UR_USE_LEVEL_ZERO_V2", "1", 1);
  return run(argc, argv, parent, consumer);
}
