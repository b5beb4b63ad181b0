// Calls that are interrupted, and threads and forks of unusual kinds. The argument chooses one; "list" prints their names.
#include "interruptions.hpp"
#include "ipc_app.hpp"

#include <atomic>
#include <chrono>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <thread>

using namespace app;

namespace {

// Memory whose handle was got and put once.
struct Work {
  Gpu gpu;
  std::byte *memory = gpu.allocate(1 << 20);

  Work() { get_and_put(); }
  ~Work() { gpu.free(memory); }
  void get_and_put() const { put(get(memory, gpu), gpu); }
};

void signal_every(suseconds_t microseconds, bool once = false) {
  const itimerval timer = {{0, once ? 0 : microseconds}, {0, microseconds}};
  require(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "no timer");
}

// Waits for a process for some time, or kills it. Whether it ended by itself.
bool has_ended(pid_t pid, const std::function<bool()> &go_on) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (go_on()) continue;
    kill(pid, SIGKILL);
    require(waitpid(pid, &status, 0) == pid, "cannot wait");
    return false;
  }
  return true;
}

// A process that gets and puts until a signal ends it, where the library is interrupted. It says on the descriptor in its argument when it
// has begun.
ALONE(cycles) {
  const Work work;
  tracer.find();
  handle(SIGTERM, [](int, siginfo_t *, void *context) {
    if (tracer.is_interrupted(context)) exit(0);
  });
  require(write(std::stoi(argument(1)), "r", 1) == 1, "nobody waits");
  for (;;) work.get_and_put();
}

// Ends processes by a handler that exits while the library records a call; counts those that did not end.
ALONE(exits_in_handler) {
  int hung = 0;
  for (int number = 0; number < 20; number++) {
    int ends[2];
    require(pipe(ends) == 0, "no pipe");
    const pid_t pid = start_self({"cycles", std::to_string(ends[1])});
    char byte = 0;
    require(read(ends[0], &byte, 1) == 1, "the process did not begin");
    int signals = 0;
    hung += !has_ended(pid, [&] {
      require(kill(pid, SIGTERM) == 0, "cannot signal");
      usleep(static_cast<useconds_t>(1000 + signals % 7 * 50));
      return ++signals < 20000;
    });
    ::close(ends[0]);
    ::close(ends[1]);
  }
  print("processes that hung: " + std::to_string(hung));
}

ALONE(forks_in_handler) {
  static std::atomic<int> forks{0};
  static Library c_library{"libc.so"};
  const Work work;
  c_library.find();
  handle(SIGALRM, [](int, siginfo_t *, void *context) {
    // The handlers of libraries for forks free memory, which must not interrupt malloc.
    if (c_library.is_interrupted(context)) return;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) forks++;
  });
  signal_every(2000);
  while (forks < 50) work.get_and_put();
  signal_every(0);
  print("forked in a handler");
}

ALONE(forks_unnoticed) {
  const Work work;
  const pid_t child = _Fork();
  require(child >= 0, "cannot fork");
  if (child == 0) {
    for (int i = 0; i < 3; i++) work.get_and_put();
    _exit(0);
  }
  require_end(child);
  for (int i = 0; i < 5; i++) work.get_and_put();
  print("child called get 3, put 3; parent called get 6, put 6");
}

// Children of bare clones that end at once, while threads of their parent call: what those hold is never given back in a child.
ALONE(ends_after_clones) {
  constexpr int children = 200, callers = 3;
  Gpu gpu;
  std::atomic<bool> stop{false};
  std::atomic<int> calling{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; caller++)
    threads.emplace_back([&] {
      for (bool first = true; !stop; first = false) {
        std::byte *memory = gpu.allocate(1 << 12);
        put(get(memory, gpu), gpu);
        gpu.free(memory);
        calling += first;
      }
    });
  while (calling < callers) usleep(100);
  int hung = 0;
  for (int number = 0; number < children; number++) {
    const pid_t child = bare_clone();
    require(child >= 0, "cannot fork");
    if (child == 0) _exit(0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    hung += !has_ended(child, [&] { return usleep(50), std::chrono::steady_clock::now() < until; });
  }
  stop = true;
  for (auto &thread : threads) thread.join();
  print("children that hung: " + std::to_string(hung));
}

// Runs a function on a thread of its own, with a stack of that size.
void *on_thread(size_t stack, const Work &work, void *(*body)(void *)) {
  pthread_attr_t attributes;
  require(pthread_attr_init(&attributes) == 0, "no attributes");
  require(pthread_attr_setstacksize(&attributes, stack) == 0, "no such stack");
  pthread_t thread;
  require(pthread_create(&thread, &attributes, body, const_cast<Work *>(&work)) == 0, "no thread");
  void *result = nullptr;
  require(pthread_join(thread, &result) == 0, "cannot join");
  return result;
}

// A thread that is cancelled before its first call, and whose calls are no cancellation points.
ALONE(is_cancelled) {
  const Work work;
  void *result = on_thread(8 << 20, work, [](void *work) -> void * {
    int before = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    static_cast<Work *>(work)->get_and_put();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    print("the calls returned");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    pthread_testcancel();
    return nullptr;
  });
  require(result == PTHREAD_CANCELED, "the thread was not cancelled");
  print("the thread was cancelled");
}

ALONE(has_a_small_stack) {
  const Work work;
  on_thread(16 << 10, work, [](void *work) -> void * {
    static_cast<Work *>(work)->get_and_put();
    return nullptr;
  });
  print("called with a small stack");
}

// A process whose handler ends it, on a stack of 8,192 bytes for signals, which lies above a page that nothing may touch.
ALONE(ends_on_signal_stack) {
  constexpr size_t size = 8192, page = 4096;
  void *mapped = mmap(nullptr, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(mapped != MAP_FAILED && mprotect(mapped, page, PROT_NONE) == 0, "no memory for a signal stack");
  stack_t stack = {};
  stack.ss_sp = static_cast<std::byte *>(mapped) + page;
  stack.ss_size = size;
  require(sigaltstack(&stack, nullptr) == 0, "no signal stack");
  handle(SIGALRM, [](int, siginfo_t *, void *) { _exit(7); }, SA_ONSTACK);
  const Work work;
  signal_every(20000, true);
  for (;;) work.get_and_put();
}

ALONE(ends_on_small_signal_stacks) {
  int otherwise = 0, status = 0;
  for (int number = 0; number < 10; number++) {
    const pid_t pid = start_self({"ends_on_signal_stack"});
    require(waitpid(pid, &status, 0) == pid, "cannot wait");
    otherwise += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
  }
  print("processes that ended otherwise: " + std::to_string(otherwise));
}

// Gets and puts below so many calls of this function, so that each depth is another call stack.
[[gnu::noinline]] int at_depth(int depth, const Work &work) {
  if (depth > 0) return at_depth(depth - 1, work) + 1;
  work.get_and_put();
  return 0;
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
    for (size_t size = 1 << 20; size >= 1024; size /= 2)
      while (void *more = std::malloc(size)) *static_cast<void **>(more) = std::exchange(taken, more);
  }
  ~NoMemory() {
    while (taken) std::free(std::exchange(taken, *static_cast<void **>(taken)));
    setrlimit(RLIMIT_AS, &before);
  }
};

ALONE(has_no_memory) {
  constexpr int depths = 400;
  const Work work;
  // The pages of the stack, and what the adapter keeps for itself.
  for (int call = 0; call < 3; call++) at_depth(call * depths, work);
  int called = 0;
  {
    const NoMemory none;
    for (int depth = 1; depth < depths; depth++) called += at_depth(depth, work) == depth;
  }
  for (int call = 0; call < 3; call++) work.get_and_put();
  print("called without memory: " + std::to_string(called));
}

} // namespace

int main(int argc, char **argv) { return run_modes(argc, argv); }
