// After ucx 4431: a large message is copied in blocks, and each block that is done closes the mapping that all of them share. Fixed,
// the last one does.
#include "museum.hpp"

using namespace app;

constexpr int blocks = 2;

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a', blocks * message_size);
  receiver.send(message(ze.get(memory)));
  receiver.await("received");
  ze.free(memory);
}

static void receiver(Peer &sender) {
  const Ze ze;
  char *memory = opened(ze, sender.receive()), data[blocks * message_size];
  for (int block = 0; block < blocks; ++block)
    receive_by_copy(ze, data + block * message_size, memory + block * message_size);
  print_received("the message", data, sizeof data);
  int refused = 0;
  for (int done = 1; done <= blocks; ++done)
    if (!is_fixed() || done == blocks) refused += ze.zeMemCloseIpcHandle(ze.context, memory) != 0;
  print("closes that were refused: " + std::to_string(refused));
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
