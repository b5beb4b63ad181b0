// After compute-runtime 974: each open of memory makes a descriptor inside the driver that no close releases. The program's own calls
// are balanced. The software device does the same on request; fixed, it is not asked to.
#include "museum.hpp"

using namespace app;

// Descriptors are counted at most once in a millisecond, and after a pause of 200 times what a count costs.
constexpr int messages = 200;

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a');
  const ze_ipc_mem_handle_t handle = ze.get(memory);
  receiver.send(message(handle));
  receiver.await("received");
  ze.put(handle);
  ze.free(memory);
}

static void receiver(Peer &sender) {
  if (!is_fixed()) setenv("ZE_SOFT_OPEN_FD", "leak", 1);
  const Ze ze;
  const ze_ipc_mem_handle_t handle = fetched(sender.receive());
  for (int i = 0; i < messages; ++i) {
    auto *memory = static_cast<char *>(ze.open(handle));
    require(memory[0] == 'a', "the data is wrong");
    ze.close(memory);
    usleep(3000);
  }
  ::close(descriptor(handle));
  print("opened and closed " + std::to_string(messages) + " times");
  sender.say("received");
}

int main(int argc, char **argv) { return run(argc, argv, sender, receiver); }
