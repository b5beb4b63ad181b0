// After ms-swift 10204, in SYCL: a trainer fills a bucket with weights, and two workers copy them. The first worker acknowledges the bucket
// when its own copy is over, and waits for the second one behind that. So the trainer fills the bucket again while the second one copies.
// Fixed, the acknowledgement comes when both copies are over.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t size = 1 << 20;

static void trainer(Peer &first) {
  Gpu gpu;
  std::byte *bucket = gpu.allocate(size);
  gpu.queue.memset(bucket, 'a', size).wait();
  Handle handle = get(bucket, gpu);
  first.send(handle.data());
  first.await("received");
  gpu.queue.memset(bucket, 'b', size).wait();
  first.say("filled again");
  first.await("closed");
  put(handle, gpu);
  gpu.free(bucket);
}

// Opens the bucket, copies it, and waits for the copy when it may.
static void copy(const Bytes &handle, const std::function<void()> &begun, const std::function<void()> &over) {
  Gpu gpu;
  std::byte *bucket = open(handle, gpu), *weights = gpu.allocate(size);
  sycl::event copied = gpu.queue.memcpy(weights, bucket, size);
  begun();
  copied.wait();
  over();
  close(bucket, gpu);
  gpu.free(weights);
}

static void second(Peer &first) {
  copy(first.receive(), [&] { first.say("begun"), first.await("go on"); }, [&] { first.say("copied"); });
}

static void worker(Peer &other) {
  if (argument(0) == "second") return second(other);
  const Bytes handle = other.receive();
  arguments.insert(arguments.begin(), "second");
  Peer peer = start_child();
  peer.send(handle);
  copy(handle, [] {}, [&] {
    peer.await("begun");
    if (is_fixed()) peer.say("go on"), peer.await("copied");
    other.say("received");
    other.await("filled again");
    if (!is_fixed()) peer.say("go on"), peer.await("copied");
  });
  require(peer.wait_for_end() == 0, "the second worker failed");
  print("both workers have a bucket");
  other.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, trainer, worker); }
