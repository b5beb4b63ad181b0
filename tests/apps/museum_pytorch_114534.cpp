// After pytorch 114534: without the caching allocator, a tensor that nobody in its process names is freed at once, though its handle is in a
// queue. The next tensor gets its address and is shared, too, so the old handle opens, and shows the wrong tensor. Fixed, a tensor stays
// until it was received.
#include "museum_cuda.hpp"

using namespace app;

static CUdeviceptr put(Peer &receiver, unsigned char letter) {
  CUdeviceptr tensor = filled(letter);
  CUipcMemHandle handle;
  check(cuIpcGetMemHandle(&handle, tensor), "cuIpcGetMemHandle");
  receiver.send(message(handle));
  return tensor;
}

static void sender(Peer &receiver) {
  use_device();
  CUdeviceptr first = put(receiver, 'a');
  if (!is_fixed()) check(cuMemFree(first), "cuMemFree");
  CUdeviceptr second = put(receiver, 'b');
  receiver.await("received");
  check(cuMemFree(second), "cuMemFree");
  if (is_fixed()) check(cuMemFree(first), "cuMemFree");
}

static char received(const CUipcMemHandle &handle) {
  CUdeviceptr tensor = 0;
  check(cuIpcOpenMemHandle(&tensor, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
  char first = 0;
  check(cuMemcpyDtoH(&first, tensor, 1), "cuMemcpyDtoH");
  check(cuIpcCloseMemHandle(tensor), "cuIpcCloseMemHandle");
  return first;
}

static void receiver(Peer &sender) {
  use_device();
  // Both are in the queue before the first one is taken out.
  const CUipcMemHandle first = handle_in(sender.receive()), second = handle_in(sender.receive());
  const char letters[] = {received(first), ' ', received(second), 0};
  print(std::string("the tensors are ") + letters);
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
