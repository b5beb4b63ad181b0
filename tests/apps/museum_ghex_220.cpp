// After GHEX 220: two ranks share their borders. Each writes its own on a stream, meets the other one at a barrier, and reads the border of
// its neighbour. Nothing waits for the stream before the barrier. Fixed, each waits for it.
#include "museum_cuda.hpp"

using namespace app;

// What both ranks do.
static void rank(Peer &neighbour) {
  use_device();
  CUstream stream;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUdeviceptr border = filled('-'), halo = 0;
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  const auto barrier = [&] { neighbour.say("here"), neighbour.await("here"); };
  CUipcMemHandle handle;
  check(cuIpcGetMemHandle(&handle, border), "cuIpcGetMemHandle");
  neighbour.send(message(handle));
  check(cuIpcOpenMemHandle(&halo, handle_in(neighbour.receive()), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  check(cuMemsetD8Async(border, 'a', message_size, stream), "cuMemsetD8Async");
  if (is_fixed()) check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  barrier();
  Bytes received(message_size);
  check(cuMemcpyDtoH(received.data(), halo, message_size), "cuMemcpyDtoH");
  barrier();
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  check(cuIpcCloseMemHandle(halo), "cuIpcCloseMemHandle");
  barrier();
  check(cuMemFree(border), "cuMemFree");
}

static void first(Peer &neighbour) {
  rank(neighbour);
  print("the borders were exchanged");
}

static void second(Peer &neighbour) { rank(neighbour); }

int main(int argc, char **argv) { return run(argc, argv, first, second); }
