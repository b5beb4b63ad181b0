// After mpich 7329: a sender keeps the handles of its buffers. It learns only with the next message that a buffer was freed,
// and puts the old handle then, which the driver has taken back already. Fixed, it forgets the handle.
#include "museum.hpp"

using namespace app;

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a');
  ze_ipc_mem_handle_t handle = ze.get(memory);
  const uint64_t id = ze.id(memory);
  receiver.send(message(handle));
  receiver.await("received");
  memory = replaced(ze, memory, 'b');
  if (ze.id(memory) != id) {
    if (!is_fixed()) ze.put(handle);
    handle = ze.get(memory);
  }
  receiver.send(message(handle));
  receiver.await("received");
  ze.put(handle);
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
