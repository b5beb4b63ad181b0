// After oneCCL 217: a container forbids pidfd_getfd, so that no process can take the descriptor in another one's handle, and each open is
// refused. Fixed, there is no such filter. With "under COMMAND..." it runs a command in the same circumstances.
#include "museum.hpp"
#include "rights.hpp"

using namespace app;

static void sender(Peer &receiver) {
  const Ze ze;
  char *memory = filled(ze, 'a');
  const ze_ipc_mem_handle_t handle = ze.get(memory);
  Bytes bytes(sizeof handle);
  std::memcpy(bytes.data(), &handle, sizeof handle);
  receiver.send(bytes);
  receiver.await("received");
  ze.put(handle);
  ze.free(memory);
}

// It leaves the descriptor to the driver.
static void receiver(Peer &sender) {
  const Ze ze;
  ze_ipc_mem_handle_t handle = {};
  std::memcpy(&handle, sender.receive().data(), sizeof handle);
  void *memory = nullptr;
  const uint32_t result = ze.try_open(handle, &memory);
  char text[32];
  snprintf(text, sizeof text, "the open returned 0x%x", result);
  print(text);
  if (result == 0) {
    print_received("the message", static_cast<char *>(memory));
    ze.close(memory);
  }
  sender.say("received");
}

int main(int argc, char **argv) {
  const bool under = argc > 2 && std::string(argv[1]) == "under";
  // The child inherits both.
  if (under || argc == 1) {
    const int failed = guarded([] {
      filter(SYS_pidfd_getfd, SECCOMP_RET_ERRNO | EPERM);
      give_up_the_right_to_trace();
    });
    if (failed != 0) return failed;
  }
  if (under) {
    execvp(argv[2], argv + 2);
    return 127;
  }
  return run(argc, argv, sender, receiver);
}
