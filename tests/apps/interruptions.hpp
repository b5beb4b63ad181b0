// Signals, the library that they interrupt, and children that the C library does not know.
#pragma once

#include "peer.hpp"

#include <link.h>
#include <sys/syscall.h>
#include <ucontext.h>

namespace app {

// A library of this process.
struct Library {
  const char *name;
  uintptr_t begin = 0, end = 0;

  void find() {
    dl_iterate_phdr(look, this);
    require(begin != 0, std::string("there is no ") + name);
  }

  // Where in the library a signal has interrupted the program; otherwise the number is larger than it.
  uintptr_t place(void *context) const {
    return static_cast<uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]) - begin;
  }
  bool is_interrupted(void *context) const { return place(context) < end - begin; }

private:
  static int look(dl_phdr_info *info, size_t, void *data) {
    auto &wanted = *static_cast<Library *>(data);
    if (std::string(info->dlpi_name).find(wanted.name) == std::string::npos) return 0;
    wanted.begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
      const auto &segment = info->dlpi_phdr[i];
      if (segment.p_type == PT_LOAD) wanted.end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    }
    return 1;
  }
};

// The library that traces this program. Elsewhere the program could wait for itself without it, too: for a lock of the adapter, or of
// malloc.
inline Library tracer{"liburscope"};

using Handler = void (*)(int, siginfo_t *, void *);
inline void handle(int signal, Handler handler, int flags = 0) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  require(sigaction(signal, &action, nullptr) == 0, "no handler");
}

inline pid_t bare_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

} // namespace app
