// After GHEX 220, in SYCL: two ranks share their borders. Each writes its own, meets the other one at a barrier, and reads the border of its
// neighbour. Nothing waits for the queue before the barrier. Fixed, each waits for it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

// What both ranks do.
static void rank(Peer &neighbour) {
  Gpu gpu;
  std::byte *border = gpu.allocate(size);
  const auto barrier = [&] { neighbour.say("here"), neighbour.await("here"); };
  Handle handle = get(border, gpu);
  neighbour.send(handle.data());
  std::byte *halo = open(neighbour.receive(), gpu);
  sycl::event written = gpu.queue.memset(border, 'a', size);
  if (is_fixed()) written.wait();
  barrier();
  sycl::queue other{gpu.context, gpu.device};
  Bytes received(size);
  other.memcpy(received.data(), halo, size).wait();
  barrier();
  written.wait();
  close(halo, gpu);
  barrier();
  put(handle, gpu);
  gpu.free(border);
}

static void first(Peer &neighbour) {
  rank(neighbour);
  print("the borders were exchanged");
}

static void second(Peer &neighbour) { rank(neighbour); }

int main(int argc, char **argv) { return run(argc, argv, first, second); }
