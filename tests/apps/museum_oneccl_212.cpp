// After oneCCL 212: a process keeps what it has opened by the address that the memory has in the other process. That one frees its
// buffer, allocates another one at the same address and shares it, too; nobody closes the old one, and the next copy goes through it.
// Fixed, the free is told, and evicts.
#include "museum.hpp"

#include <map>

using namespace app;

// What the two exchange in front of a collective: an address and a handle.
static Bytes announced(const char *memory, const ze_ipc_mem_handle_t &handle) {
  Bytes bytes = message(handle);
  const auto *address = reinterpret_cast<const std::byte *>(&memory);
  bytes.insert(bytes.end(), address, address + sizeof memory);
  return bytes;
}

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a');
  receiver.send(announced(memory, ze.get(memory)));
  receiver.await("received");
  receiver.say("free");
  receiver.await("evicted");
  memory = replaced(ze, memory, 'b');
  receiver.send(announced(memory, ze.get(memory)));
  receiver.await("received");
  ze.free(memory);
}

static char *cached(const Ze &ze, std::map<uint64_t, char *> &cache, Bytes announced) {
  uint64_t address = 0;
  const size_t end = announced.size() - sizeof address;
  std::memcpy(&address, announced.data() + end, sizeof address);
  announced.resize(end);
  const auto found = cache.find(address);
  if (found != cache.end()) return found->second;
  return cache[address] = opened(ze, announced);
}

static void receiver(Peer &sender) {
  const Ze ze;
  std::map<uint64_t, char *> cache;
  const auto receive = [&](const char *what) {
    char data[message_size];
    receive_by_copy(ze, data, cached(ze, cache, sender.receive()));
    print_received(what, data);
    sender.say("received");
  };
  const auto evict = [&] {
    for (const auto &entry : cache) ze.close(entry.second);
    cache.clear();
  };
  receive("the first message");
  sender.await("free");
  if (is_fixed()) evict();
  sender.say("evicted");
  receive("the second message");
  evict();
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
