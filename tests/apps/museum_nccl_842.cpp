// After nccl 842: a buffer is first used with a peer in the same process, which needs no handle, so none is got. Later a peer in another
// process is sent the handle that was never filled in. Fixed, it is got when it is needed first.
#include "museum_cuda.hpp"

using namespace app;

static void sender(Peer &receiver) {
  use_device();
  CUdeviceptr buffer = filled('a');
  CUipcMemHandle handle = {};
  if (is_fixed()) check(cuIpcGetMemHandle(&handle, buffer), "cuIpcGetMemHandle");
  receiver.send(message(handle));
  receiver.await("received");
  check(cuMemFree(buffer), "cuMemFree");
}

static void receiver(Peer &sender) {
  use_device();
  CUdeviceptr buffer = 0;
  const CUresult result = cuIpcOpenMemHandle(&buffer, handle_in(sender.receive()), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  char first = 0;
  if (result == CUDA_SUCCESS) {
    check(cuMemcpyDtoH(&first, buffer, 1), "cuMemcpyDtoH");
    check(cuIpcCloseMemHandle(buffer), "cuIpcCloseMemHandle");
  }
  print(result == CUDA_SUCCESS ? std::string("the message is ") + first : "the open returned " + std::to_string(result));
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
