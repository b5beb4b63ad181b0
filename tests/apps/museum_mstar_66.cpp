// After mstar 66, in SYCL: the receiver has the memory of a cache open, so that of a page only the place is sent, and nothing says that the
// page is written. Fixed, the sender waits for the write before it sends the place. The sender's device completes nothing before somebody
// waits for it.
#include "ipc_app.hpp"

using namespace app;

constexpr size_t page_size = 1 << 18, pages = 2;

static void sender(Peer &receiver) {
  setenv("ZE_SOFT_DELAY", "until-wait", 1);
  Gpu gpu;
  std::byte *cache = gpu.allocate(pages * page_size);
  Handle handle = get(cache, gpu);
  receiver.send(handle.data());
  for (size_t page = 0; page < pages; ++page) {
    const Bytes data = pattern(page_size, static_cast<unsigned>(page));
    sycl::event written = gpu.queue.memcpy(cache + page * page_size, data.data(), page_size);
    if (is_fixed() || page == 0) written.wait();
    receiver.say("page");
    receiver.await("received");
    written.wait();
  }
  receiver.await("closed");
  put(handle, gpu);
  gpu.free(cache);
}

static void receiver(Peer &sender) {
  Gpu gpu;
  std::byte *cache = open(sender.receive(), gpu);
  for (size_t page = 0; page < pages; ++page) {
    sender.await("page");
    const bool is_right = gpu.read(cache + page * page_size, page_size) == pattern(page_size, static_cast<unsigned>(page));
    print("page " + std::to_string(page + 1) + (is_right ? " is right" : " is stale"));
    sender.say("received");
  }
  close(cache, gpu);
  sender.say("closed");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
