// After vllm 46515: to see how much memory graphs take, each is captured and thrown away. The other processes open its buffers, and close
// none of them when it is thrown away and its memory is freed. Fixed, they close them first.
#include "museum_cuda.hpp"

using namespace app;

constexpr int graphs = 20;

static void owner(Peer &rank) {
  use_device();
  for (int graph = 0; graph < graphs; ++graph) {
    CUdeviceptr buffer = filled('a');
    CUipcMemHandle handle;
    check(cuIpcGetMemHandle(&handle, buffer), "cuIpcGetMemHandle");
    rank.send(message(handle));
    rank.await("captured");
    check(cuMemFree(buffer), "cuMemFree");
  }
  rank.say("all are measured");
}

static void rank(Peer &owner) {
  use_device();
  int open = 0;
  for (int graph = 0; graph < graphs; ++graph) {
    CUdeviceptr buffer = 0;
    check(cuIpcOpenMemHandle(&buffer, handle_in(owner.receive()), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
    if (is_fixed()) check(cuIpcCloseMemHandle(buffer), "cuIpcCloseMemHandle");
    else ++open;
    owner.say("captured");
  }
  owner.await("all are measured");
  print("buffers of graphs that are gone and still open: " + std::to_string(open));
}

int main(int argc, char **argv) { return run(argc, argv, owner, rank); }
