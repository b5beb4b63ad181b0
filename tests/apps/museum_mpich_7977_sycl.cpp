// The same mistake as museum_mpich_7977, in a program of SYCL: what is opened is closed when the first of two copies out of it is complete.
// The receiver's device is slowed, so that the second copy always comes late.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20, slice = size / 2;

static void sender(Peer &receiver) {
  Gpu gpu;
  auto [memory, handle] = export_pattern(gpu, size, 41);
  receiver.send(handle.data());
  receiver.await("evicted");
  gpu.write(memory, pattern(size, 42));
  receiver.say("used again");
  put(handle, gpu);
  gpu.free(memory);
}

static void receiver(Peer &sender) {
  setenv("ZE_SOFT_DELAY", "2s", 1);
  Gpu gpu;
  std::byte *memory = open(sender.receive(), gpu);
  Bytes data(size);
  sycl::event one = gpu.queue.memcpy(data.data(), memory, slice);
  sycl::event other = gpu.queue.memcpy(data.data() + slice, memory + slice, slice);
  one.wait();
  if (is_fixed()) other.wait();
  close(memory, gpu);
  sender.say("evicted");
  sender.await("used again");
  other.wait();
  print(data == pattern(size, 41) ? "both slices are right" : "a slice is wrong");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
