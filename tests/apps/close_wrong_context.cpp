// The violation: the consumer closes its mapping in a context other than the one that it was opened in.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 8);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  gpu.free(memory);
}

static void consumer(Peer &producer) {
  Gpu gpu, other;
  std::byte *memory = open_and_read(producer, gpu, size);
  print("close in another context " + outcome([&] { close(memory, other); }));
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
