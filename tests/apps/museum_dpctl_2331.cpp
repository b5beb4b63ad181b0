// After dpctl 2331: who opens memory says itself how many bytes that are, and nothing compares it with what was shared. Here the
// receiver takes an array for larger than it is. Fixed, the size comes with the handle.
#include "museum.hpp"

using namespace app;

// The last bytes of its last page belong to no array.
constexpr size_t array_size = message_size - 1000;

static void sender(Peer &receiver) {
  const Ze ze;
  char *array = filled(ze, 'a', array_size);
  receiver.send(message(ze.get(array)));
  receiver.await("received");
  ze.free(array);
}

static void receiver(Peer &sender) {
  const Ze ze;
  char *memory = opened(ze, sender.receive()), data[message_size];
  const size_t nbytes = is_fixed() ? array_size : message_size;
  receive_by_copy(ze, data, memory, nbytes);
  print(data[nbytes - 1] == 'a' ? "the last byte is a" : "the last byte is none of the array's");
  ze.close(memory);
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
