// What the kernel lets a process do.
#pragma once

#include "peer.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
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

// A filter of system calls: what one of them does from now on (SECCOMP_RET_…), here and in all that the process starts.
inline void filter(uint32_t call, uint32_t action) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(filter), filter};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "no filter of system calls");
}

} // namespace app
