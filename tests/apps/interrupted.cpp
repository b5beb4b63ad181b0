// Calls that are interrupted, and threads and forks of unusual kinds. The argument chooses one; "list" prints their names.
#include "ipc_app.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

using namespace app;

namespace {

void get_and_put(const Gpu &gpu, void *memory) { put(get(memory, gpu), gpu); }

// The addresses of a library.
struct Addresses {
  const char *name;
  std::uintptr_t begin = 0, end = 0;

  void find() { dl_iterate_phdr(look, this); }

  // Whether a signal has interrupted the library.
  bool are_interrupted(void *context) const {
    const auto at = static_cast<std::uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
    return at >= begin && at < end;
  }

  static int look(dl_phdr_info *info, size_t, void *data) {
    auto &wanted = *static_cast<Addresses *>(data);
    if (std::string(info->dlpi_name).find(wanted.name) == std::string::npos) return 0;
    wanted.begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
      const auto &segment = info->dlpi_phdr[i];
      if (segment.p_type == PT_LOAD) wanted.end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    }
    return 1;
  }
};

Addresses tracer{"liburscope"}, c_library{"libc.so"};

void handle(int signal, void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  require(sigaction(signal, &action, nullptr) == 0, "no handler");
}

// Exits where the library was interrupted. Elsewhere this program could wait for itself without it, too: for a lock of the
// adapter, or of malloc.
void exit_in_tracer(int, siginfo_t *, void *context) {
  if (tracer.are_interrupted(context)) exit(0);
}

// A process that gets and puts until a signal ends it. It says when it has begun.
int cycles(int ready) {
  return run_alone([=] {
    Gpu gpu;
    std::byte *memory = gpu.allocate(1 << 20);
    get_and_put(gpu, memory);
    tracer.find();
    require(tracer.begin != 0, "the program is not traced");
    handle(SIGTERM, exit_in_tracer);
    require(write(ready, "r", 1) == 1, "nobody waits");
    for (;;) get_and_put(gpu, memory);
  });
}

// Ends processes by a handler that exits while the library records a call; counts those that did not end.
void exits_in_handler() {
  constexpr int processes = 20;
  int hung = 0;
  for (int number = 0; number < processes; number++) {
    int ends[2];
    require(pipe(ends) == 0, "no pipe");
    char self[4096] = {};
    require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
    const std::string ready = std::to_string(ends[1]);
    char mode[] = "cycles";
    char *const arguments[] = {self, mode, const_cast<char *>(ready.c_str()), nullptr};
    pid_t pid = 0;
    require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start a process");
    char byte = 0;
    require(read(ends[0], &byte, 1) == 1, "the process did not begin");
    int status = 0, waited = 0;
    for (int signal = 0; signal < 20000 && waited == 0; signal++) {
      require(kill(pid, SIGTERM) == 0, "cannot signal");
      usleep(static_cast<useconds_t>(1000 + signal % 7 * 50));
      waited = waitpid(pid, &status, WNOHANG);
    }
    if (waited == 0) {
      hung++;
      kill(pid, SIGKILL);
      require(waitpid(pid, &status, 0) == pid, "cannot wait");
    }
    ::close(ends[0]);
    ::close(ends[1]);
  }
  print("processes that hung: " + std::to_string(hung));
}

std::atomic<int> forks{0};

void forks_in_handler() {
  Gpu gpu;
  std::byte *memory = gpu.allocate(1 << 20);
  get_and_put(gpu, memory);
  c_library.find();
  require(c_library.begin != 0, "no C library");
  handle(SIGALRM, [](int, siginfo_t *, void *context) {
    // The handlers of libraries for forks free memory, which must not interrupt malloc.
    if (c_library.are_interrupted(context)) return;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) forks++;
  });
  constexpr suseconds_t pause = 2000;
  const itimerval timer = {{0, pause}, {0, pause}};
  require(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
  while (forks < 50) get_and_put(gpu, memory);
  const itimerval none = {};
  require(setitimer(ITIMER_REAL, &none, nullptr) == 0, "cannot stop the timer");
  gpu.free(memory);
  print("forked in a handler");
}

void forks_unnoticed() {
  Gpu gpu;
  std::byte *memory = gpu.allocate(1 << 20);
  get_and_put(gpu, memory);
  const pid_t child = _Fork();
  require(child >= 0, "cannot fork");
  if (child == 0) {
    for (int i = 0; i < 3; i++) get_and_put(gpu, memory);
    _exit(0);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child && status == 0, "the child failed");
  for (int i = 0; i < 5; i++) get_and_put(gpu, memory);
  gpu.free(memory);
  print("child called get 3, put 3; parent called get 6, put 6");
}

// Children of bare clones that end at once, while threads of their parent call: what those hold is never given back in a child.
void ends_after_clones() {
  constexpr int children = 200, callers = 3;
  constexpr auto patience = std::chrono::seconds(10);
  Gpu gpu;
  std::atomic<bool> stop{false};
  std::atomic<int> calling{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; caller++)
    threads.emplace_back([&] {
      for (bool first = true; !stop; first = false) {
        std::byte *memory = gpu.allocate(1 << 12);
        get_and_put(gpu, memory);
        gpu.free(memory);
        calling += first;
      }
    });
  while (calling < callers) usleep(100);
  int hung = 0;
  for (int number = 0; number < children; number++) {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    require(child >= 0, "cannot fork");
    if (child == 0) _exit(0);
    int status = 0;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        hung++;
        kill(child, SIGKILL);
        require(waitpid(child, &status, 0) == child, "cannot wait");
        break;
      }
      usleep(50);
    }
  }
  stop = true;
  for (auto &thread : threads) thread.join();
  print("children that hung: " + std::to_string(hung));
}

// Runs a function on a thread of its own, with a stack of that size.
void *on_thread(size_t stack, void *(*body)(void *), void *argument) {
  pthread_attr_t attributes;
  require(pthread_attr_init(&attributes) == 0, "no attributes");
  require(pthread_attr_setstacksize(&attributes, stack) == 0, "no such stack");
  pthread_t thread;
  require(pthread_create(&thread, &attributes, body, argument) == 0, "no thread");
  void *result = nullptr;
  require(pthread_join(thread, &result) == 0, "cannot join");
  return result;
}

struct Work {
  Gpu gpu;
  std::byte *memory = gpu.allocate(1 << 20);
};

// A thread that is cancelled before its first call, and whose calls are no cancellation points.
void is_cancelled() {
  Work work;
  get_and_put(work.gpu, work.memory);
  void *result = on_thread(8 << 20, [](void *argument) -> void * {
    auto &work = *static_cast<Work *>(argument);
    int before = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    get_and_put(work.gpu, work.memory);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    print("the calls returned");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    pthread_testcancel();
    return nullptr;
  }, &work);
  require(result == PTHREAD_CANCELED, "the thread was not cancelled");
  work.gpu.free(work.memory);
  print("the thread was cancelled");
}

void has_a_small_stack() {
  Work work;
  get_and_put(work.gpu, work.memory);
  on_thread(16 << 10, [](void *argument) -> void * {
    auto &work = *static_cast<Work *>(argument);
    get_and_put(work.gpu, work.memory);
    return nullptr;
  }, &work);
  work.gpu.free(work.memory);
  print("called with a small stack");
}

// A process whose handler ends it, on a stack of 8,192 bytes for signals, which lies above a page that nothing may touch.
int ends_on_signal_stack() {
  return run_alone([] {
    constexpr size_t size = 8192, page = 4096;
    void *mapped = mmap(nullptr, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(mapped != MAP_FAILED && mprotect(mapped, page, PROT_NONE) == 0, "no memory for a signal stack");
    stack_t stack = {};
    stack.ss_sp = static_cast<std::byte *>(mapped) + page;
    stack.ss_size = size;
    require(sigaltstack(&stack, nullptr) == 0, "no signal stack");
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(7); };
    action.sa_flags = SA_ONSTACK;
    require(sigaction(SIGALRM, &action, nullptr) == 0, "no handler");
    Work work;
    get_and_put(work.gpu, work.memory);
    const itimerval timer = {{0, 0}, {0, 20000}};
    require(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
    for (;;) get_and_put(work.gpu, work.memory);
  });
}

void ends_on_small_signal_stacks() {
  int otherwise = 0;
  for (int number = 0; number < 10; number++) {
    char self[4096] = {}, mode[] = "ends_on_signal_stack";
    require(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot find this program");
    char *const arguments[] = {self, mode, nullptr};
    pid_t pid = 0;
    int status = 0;
    require(posix_spawn(&pid, self, nullptr, nullptr, arguments, environ) == 0, "cannot start a process");
    require(waitpid(pid, &status, 0) == pid, "cannot wait");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) otherwise++;
  }
  print("processes that ended otherwise: " + std::to_string(otherwise));
}

// Gets and puts below so many calls of this function, so that each depth is another call stack.
[[gnu::noinline]] int at_depth(int depth, const Gpu &gpu, void *memory) {
  if (depth == 0) {
    get_and_put(gpu, memory);
    return 0;
  }
  return at_depth(depth - 1, gpu, memory) + 1;
}

// While this lives, no memory can be allocated but small pieces. The runtime cannot do without those.
class NoMemory {
  rlimit before = {};
  void *taken = nullptr;

public:
  NoMemory() {
    require(getrlimit(RLIMIT_AS, &before) == 0, "no limit");
    const rlimit nothing = {1, before.rlim_max};
    require(setrlimit(RLIMIT_AS, &nothing) == 0, "cannot set the limit");
    for (size_t size = 1 << 20; size >= 1024; size /= 2) {
      while (void *more = std::malloc(size)) {
        *static_cast<void **>(more) = taken;
        taken = more;
      }
    }
  }
  ~NoMemory() {
    while (taken) {
      void *next = *static_cast<void **>(taken);
      std::free(taken);
      taken = next;
    }
    setrlimit(RLIMIT_AS, &before);
  }
};

void has_no_memory() {
  constexpr int depths = 400;
  Work work;
  // The pages of the stack, and what the adapter keeps for itself.
  for (int call = 0; call < 3; call++) at_depth(call * depths, work.gpu, work.memory);
  int called = 0;
  {
    const NoMemory none;
    for (int depth = 1; depth < depths; depth++) called += at_depth(depth, work.gpu, work.memory) == depth;
  }
  for (int call = 0; call < 3; call++) get_and_put(work.gpu, work.memory);
  work.gpu.free(work.memory);
  print("called without memory: " + std::to_string(called));
}

const struct {
  const char *name;
  void (*run)();
} modes[] = {
    {"exits_in_handler", exits_in_handler}, {"forks_in_handler", forks_in_handler}, {"forks_unnoticed", forks_unnoticed},
    {"is_cancelled", is_cancelled},         {"has_a_small_stack", has_a_small_stack}, {"has_no_memory", has_no_memory},
    {"ends_on_small_signal_stacks", ends_on_small_signal_stacks}, {"ends_after_clones", ends_after_clones},
};

} // namespace

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "cycles") return cycles(std::atoi(argv[2]));
  if (mode == "ends_on_signal_stack") return ends_on_signal_stack();
  for (const auto &[name, run] : modes) {
    if (mode == "list") printf("%s\n", name);
    if (mode == name) return run_alone(run);
  }
  return mode == "list" ? 0 : 2;
}
