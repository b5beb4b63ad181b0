// After ms-swift 10204: a trainer fills a bucket with weights, and two workers copy them. The first worker acknowledges the bucket when its
// own copy is over, and waits for the second one behind that. So the trainer fills the bucket again while the second one copies. Fixed, the
// acknowledgement comes when both copies are over.
#include "museum_cuda.hpp"

using namespace app;

static void trainer(Peer &first) {
  use_device();
  CUdeviceptr bucket = filled('a');
  CUipcMemHandle handle;
  check(cuIpcGetMemHandle(&handle, bucket), "cuIpcGetMemHandle");
  first.send(message(handle));
  first.await("received");
  check(cuMemsetD8(bucket, 'b', message_size), "cuMemsetD8");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  first.say("filled again");
  first.await("closed");
  check(cuMemFree(bucket), "cuMemFree");
}

// Opens the bucket, copies it, and waits for the copy when it may.
static void copy(const Bytes &handle, const std::function<void()> &begun, const std::function<void()> &over) {
  use_device();
  CUstream stream;
  CUdeviceptr bucket = 0, weights = 0;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuMemAlloc(&weights, message_size), "cuMemAlloc");
  check(cuIpcOpenMemHandle(&bucket, handle_in(handle), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  check(cuMemcpyDtoDAsync(weights, bucket, message_size, stream), "cuMemcpyDtoDAsync");
  begun();
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  over();
  check(cuIpcCloseMemHandle(bucket), "cuIpcCloseMemHandle");
  check(cuMemFree(weights), "cuMemFree");
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
