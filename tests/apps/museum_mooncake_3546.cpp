// After Mooncake 3546: a pool of equal blocks in one allocation, and a handle for each block's own address. What is opened begins
// where the allocation begins, so every block reads as the first one. Fixed, the handle is that of the pool, and the receiver adds
// the offset.
#include "museum.hpp"

using namespace app;

constexpr size_t blocks = 3;

static void sender(Peer &receiver) {
  const Ze ze;
  char *pool = filled(ze, 'a', blocks * message_size);
  for (size_t block = 0; block < blocks; ++block) {
    char *begin = pool + block * message_size;
    std::memset(begin, static_cast<int>('a' + block), message_size);
    receiver.send(message(ze.get(is_fixed() ? pool : begin)));
    receiver.await("received");
  }
  ze.free(pool);
}

static void receiver(Peer &sender) {
  const Ze ze;
  for (size_t block = 0; block < blocks; ++block) {
    char *memory = opened(ze, sender.receive()), data[message_size];
    receive_by_copy(ze, data, memory + (is_fixed() ? block * message_size : 0));
    print_received(("block " + std::to_string(block)).c_str(), data);
    ze.close(memory);
    sender.say("received");
  }
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
