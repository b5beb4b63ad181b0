// What the kernel lets a process do.
#pragma once

#include "peer.hpp"

#include <sys/syscall.h>

namespace app {

// Gives up the right to trace any process, and with it the right to fetch any descriptor. That is permanent, and holds for what the process
// starts, too, unless it starts it with privileges of its own.
inline void give_up_the_right_to_trace() {
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0}; // _LINUX_CAPABILITY_VERSION_3, this thread
  const uint32_t none[6] = {};
  require(syscall(SYS_capset, &header, none) == 0, "cannot give up capabilities");
}

} // namespace app
