// After pytorch 191725: each time a tensor is sent, the allocator gets handle data of its memory anew, and nobody puts them. Fixed, the
// allocation has one handle, which is put when nobody opens it any more.
#include "ipc_app.hpp"

using namespace app;

constexpr int messages = 300;

static void sender(Peer &receiver) {
  Gpu gpu;
  std::byte *tensor = gpu.allocate(unpooled);
  std::vector<Handle> handles;
  for (int message = 0; message < messages; ++message) {
    if (!is_fixed() || handles.empty()) handles.push_back(get(tensor, gpu));
    receiver.send(handles.back().data());
    receiver.await("received");
  }
  print("handles of one tensor: " + std::to_string(handles.size()));
  if (is_fixed()) put(handles.back(), gpu);
  gpu.free(tensor);
}

static void receiver(Peer &sender) {
  Gpu gpu;
  for (int message = 0; message < messages; ++message) {
    close(open(sender.receive(), gpu), gpu);
    sender.say("received");
  }
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
