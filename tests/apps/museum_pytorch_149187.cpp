// After pytorch 149187: the owner of tensors counts the handles that it has given away, and frees a tensor when its reference came back. A
// receiver takes the first tensor. Of the others it looks at the shape in the message only and opens no handle, so it has nothing to give
// back, and they stay. Fixed, it opens each tensor, closes it, and says so.
#include "museum_cuda.hpp"

using namespace app;

constexpr int tensors = 20;
// What a receiver answers.
const Bytes seen(1), given_back(2);

static void owner(Peer &receiver) {
  use_device();
  int kept = 0;
  for (int tensor = 0; tensor < tensors; ++tensor) {
    CUdeviceptr memory = filled('a');
    CUipcMemHandle handle;
    check(cuIpcGetMemHandle(&handle, memory), "cuIpcGetMemHandle");
    receiver.send(message(handle));
    if (receiver.receive() == given_back) check(cuMemFree(memory), "cuMemFree");
    else ++kept;
  }
  print("tensors that are never freed: " + std::to_string(kept));
}

static void receiver(Peer &owner) {
  use_device();
  for (int tensor = 0; tensor < tensors; ++tensor) {
    const CUipcMemHandle handle = handle_in(owner.receive());
    const bool takes = tensor == 0 || is_fixed();
    if (takes) {
      CUdeviceptr memory = 0;
      check(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
      check(cuIpcCloseMemHandle(memory), "cuIpcCloseMemHandle");
    }
    owner.send(takes ? given_back : seen);
  }
}

int main(int argc, char **argv) { return run(argc, argv, owner, receiver); }
