// Prints the numbers of the system calls that a process makes which shares memory, from its first call of the Unified Runtime to its end: a
// filter of system calls (seccomp) tells its child of each.
#include "ur_app.hpp"

#include <atomic>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>

using namespace app;

namespace {

// More calls than the first size of a trace has room for, on two threads.
void share() {
  const Ur ur;
  const auto work = [&ur] {
    void *memory = ur.allocate(1 << 20);
    for (int i = 0; i < 8000; i++) ur.put(ur.get(memory));
    ur.free(memory);
  };
  std::thread other(work);
  work();
  other.join();
}

// Has each system call wait for the owner of the descriptor that this returns, in this thread and in those that it starts.
int filter_all() {
  sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
  const sock_fprog program = {std::size(all), all};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

// Lets all system calls of a process go on, and prints the number of each once.
void listen(long process, int listener) {
  const int heard = static_cast<int>(syscall(SYS_pidfd_getfd, process, listener, 0));
  require(heard >= 0, "no filter of system calls");
  std::set<int> called;
  pollfd wait = {heard, POLLIN, 0};
  while (poll(&wait, 1, -1) == 1 && (wait.revents & POLLIN) != 0) {
    seccomp_notif call = {};
    if (ioctl(heard, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    called.insert(call.data.nr);
    seccomp_notif_resp goes_on = {call.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(heard, SECCOMP_IOCTL_NOTIF_SEND, &goes_on);
  }
  for (const int number : called) print(std::to_string(number));
}

} // namespace

int main() {
  void *shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto &listener = *new (shared) std::atomic<int>(0);
  const long process = syscall(SYS_pidfd_open, getpid(), 0);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  if (fork() == 0) {
    while (listener == 0) std::this_thread::yield();
    listen(process, listener);
    return 0;
  }
  listener = filter_all();
  share();
}
