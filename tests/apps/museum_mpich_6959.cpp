// After mpich 6959: a receiver keeps all that it has opened, without a bound. The sender frees its buffer after each message, but the
// driver keeps the memory as long as the receiver has it open. Fixed, the receiver closes the oldest of 16.
#include "museum.hpp"

#include <deque>

using namespace app;

constexpr int messages = 300;

static void sender(Peer &receiver) {
  const Ze ze;
  for (int i = 0; i < messages; ++i) {
    char *memory = filled(ze, static_cast<char>('a' + i % 26));
    receiver.send(message(ze.get(memory)));
    receiver.await("received");
    ze.free(memory);
  }
}

static void receiver(Peer &sender) {
  const Ze ze;
  std::deque<char *> cache;
  for (int i = 0; i < messages; ++i) {
    if (is_fixed() && cache.size() == 16) {
      ze.close(cache.front());
      cache.pop_front();
    }
    cache.push_back(opened(ze, sender.receive()));
    require(cache.back()[0] == static_cast<char>('a' + i % 26), "the data is wrong");
    sender.say("received");
  }
  print("the receiver has " + std::to_string(cache.size()) + " buffers open");
  if (is_fixed())
    for (char *memory : cache) ze.close(memory);
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
