// A clean program that shares memory with itself under a filter of system calls that kills it for statx, which it does not make by then.
#include "ur_app.hpp"

#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace app;

static void forbid_statx() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a filter of system calls");
}

int main() {
  return run_alone([] {
    Ur ur;
    void *memory = nullptr;
    CHECK(urUSMDeviceAlloc(ur.context, ur.device, nullptr, nullptr, 1 << 16, &memory));
    const auto share = [&](int times) {
      for (int i = 0; i < times; i++) {
        void *data = nullptr;
        size_t size = 0;
        CHECK(urIPCGetMemHandleExp(ur.context, memory, &data, &size));
        CHECK(urIPCPutMemHandleExp(ur.context, data));
      }
    };
    // The software device makes the call when it is first used.
    share(1);
    forbid_statx();
    // So often that the file of a trace grows.
    share(5000);
    // The trace of a child begins under the filter.
    const pid_t child = fork();
    if (child == 0) {
      share(1);
      _exit(0);
    }
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child did not end well");
    CHECK(urUSMFree(ur.context, memory));
    print("shared memory without statx");
  });
}
