// After oneCCL 217: a container forbids pidfd_getfd, so that no process can take the descriptor in another one's handle, and each open is
// refused. Mended, there is no such filter. With "under COMMAND..." it runs a command in the same circumstances.
#include "museum.hpp"
#include "rights.hpp"

#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>

using namespace app;

static void forbid_pidfd_getfd() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "no filter of system calls");
}

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
    close(ze, memory);
  }
  sender.say("received");
}

int main(int argc, char **argv) {
  const bool under = argc > 2 && std::string(argv[1]) == "under";
  // The child inherits both.
  if (under || argc == 1) {
    const int failed = guarded([] {
      forbid_pidfd_getfd();
      give_up_the_right_to_trace();
    });
    if (failed != 0) return failed;
  }
  if (under) {
    execvp(argv[2], argv + 2);
    return 127;
  }
  return run_museum(argc, argv, sender, receiver);
}
