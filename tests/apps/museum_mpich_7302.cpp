// After mpich 7302: a sender finds the descriptor of a buffer by its address. The program frees the buffer and allocates another one, which
// gets the same address, so the sender sends the old descriptor, and the receiver opens memory that is gone. Fixed, the
// sender compares the id of the allocation.
#include "museum.hpp"

#include <map>

using namespace app;

// A descriptor that the library has made of a handle, and what it was of.
struct Entry {
  ze_ipc_mem_handle_t handle = {};
  int descriptor = -1;
  uint64_t id = 0;
};

static ze_ipc_mem_handle_t cached(const Ze &ze, std::map<const void *, Entry> &cache, const char *memory) {
  const uint64_t id = ze.id(memory);
  auto found = cache.find(memory);
  if (found != cache.end() && is_fixed() && found->second.id != id) {
    ::close(found->second.descriptor);
    cache.erase(found);
    found = cache.end();
  }
  if (found == cache.end()) {
    const ze_ipc_mem_handle_t handle = ze.get(memory);
    found = cache.emplace(memory, Entry{handle, dup(descriptor(handle)), id}).first;
  }
  return only_descriptor(found->second.descriptor);
}

static void sender(Peer &receiver) {
  const Ze ze;
  std::map<const void *, Entry> cache;
  char *memory = filled(ze, 'a');
  receiver.send(message(cached(ze, cache, memory)));
  receiver.await("received");
  memory = replaced(ze, memory, 'b');
  receiver.send(message(cached(ze, cache, memory)));
  receiver.await("received");
  ze.free(memory);
}

static void receiver(Peer &sender) {
  const Ze ze;
  for (const char *what : {"the first message", "the second message"}) {
    char *memory = opened(ze, sender.receive());
    char data[message_size];
    receive_by_copy(ze, data, memory);
    ze.close(memory);
    print_received(what, data);
    sender.say("received");
  }
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
