// Worth a note: the producer gets handle data that it never sends, besides data that is opened.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void producer(Peer &consumer) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 38);
  std::byte *forgotten = gpu.allocate(size);
  Handle unsent = app::get(forgotten, gpu);
  consumer.send(handle.data());
  consumer.wait_for_end();
  put(handle, gpu);
  put(unsent, gpu);
  gpu.free(memory);
  gpu.free(forgotten);
  print("one was sent");
}

static void consumer(Peer &producer) {
  Gpu gpu;
  close(open_and_read(producer, gpu, size), gpu);
}

int main(int argc, char **argv) { return run(argc, argv, producer, consumer, false); }
