// After mpich 7977 and 7947: a receiver keeps what it has opened in a cache of one entry. Two messages are slices of one buffer. When the
// first has arrived, the entry counts as unused, although the copy of the second still runs: the next buffer evicts it, and the sender is
// told that it may use the first one again. Fixed, the entry counts its messages.
#include "museum.hpp"

using namespace app;

constexpr size_t slice = message_size / 2;

static void sender(Peer &receiver) {
  const Ze ze;
  char *first = filled(ze, 'a'), *second = filled(ze, 'b');
  const ze_ipc_mem_handle_t of_first = ze.get(first), of_second = ze.get(second);
  receiver.send(message(of_first));
  receiver.await("evicts");
  std::memset(first, 'x', message_size);
  receiver.send(message(of_second));
  receiver.await("received");
  ze.put(of_first);
  ze.put(of_second);
  ze.free(first);
  ze.free(second);
}

// The cache, with room for one entry.
struct Cache {
  const Ze &ze;
  char *memory = nullptr;
  int messages = 0;

  void completed() { messages = is_fixed() ? messages - 1 : 0; }
  bool is_unused() const { return messages == 0; }
  void evict() { ze.close(memory); }
};

static void receiver(Peer &sender) {
  const Ze ze;
  Cache cache{ze, opened(ze, sender.receive()), 2};
  char one[slice], other[slice], next[message_size];
  const HeldCopy copies[] = {{ze, one, cache.memory, slice}, {ze, other, cache.memory + slice, slice}};
  copies[0].let_go();
  copies[0].wait();
  cache.completed();
  const auto second_arrives = [&] {
    copies[1].let_go();
    copies[1].wait();
    cache.completed();
  };
  if (!cache.is_unused()) second_arrives();
  cache.evict();
  sender.say("evicts");
  char *memory = opened(ze, sender.receive());
  if (!is_fixed()) second_arrives();
  receive_by_copy(ze, next, memory);
  ze.close(memory);
  print_received("the first slice", one, slice);
  print_received("the second slice", other, slice);
  print_received("the next message", next);
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
