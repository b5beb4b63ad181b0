// After mpich 7055: a sender gets a handle for each message and returns none of them, so that descriptors pile up as long as the
// buffer lives. Mended, it puts each handle when its message has arrived.
#include "museum.hpp"

using namespace app;

constexpr int messages = 300;

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a');
  for (int i = 0; i < messages; ++i) {
    const ze_ipc_mem_handle_t handle = ze.get(memory);
    receiver.send(message(handle));
    receiver.await("received");
    if (is_mended()) ze.put(handle);
  }
  print("the sender has sent " + std::to_string(messages) + " messages");
  ze.free(memory);
}

static void receiver(Peer &sender) {
  const Ze ze;
  for (int i = 0; i < messages; ++i) {
    char *memory = opened(ze, sender.receive());
    require(memory[0] == 'a', "the data is wrong");
    ze.close(memory);
    sender.say("received");
  }
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
