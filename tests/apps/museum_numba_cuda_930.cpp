// After numba-cuda 930, in SYCL: the copy that fills an array is asynchronous, and the array is shared before the copy is complete. Fixed,
// the sender waits for it first. The sender's device completes nothing before somebody waits for it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void sender(Peer &receiver) {
  setenv("ZE_SOFT_DELAY", "until-wait", 1);
  Gpu gpu;
  std::byte *array = gpu.allocate(size);
  const Bytes data = pattern(size, 41);
  sycl::event copied = gpu.queue.memcpy(array, data.data(), size);
  if (is_fixed()) copied.wait();
  Handle handle = get(array, gpu);
  receiver.send(handle.data());
  receiver.await("received");
  copied.wait();
  put(handle, gpu);
  gpu.free(array);
}

static void receiver(Peer &sender) {
  Gpu gpu;
  std::byte *array = open(sender.receive(), gpu);
  const Bytes data = gpu.read(array, size);
  print(data == pattern(size, 41) ? "the array is right" : "the array is stale");
  close(array, gpu);
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
